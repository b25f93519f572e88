// Typesets the formulas of a page.
for (const place of document.querySelectorAll(".math")) {
  katex.render(place.textContent, place, { displayMode: place.tagName === "DIV", throwOnError: false });
}
