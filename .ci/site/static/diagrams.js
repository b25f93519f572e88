// Draws the diagrams of a page in the colours of its theme, and again when the theme changes.
const dark = matchMedia("(prefers-color-scheme: dark)");
const diagrams = [...document.querySelectorAll(".mermaid")].map((place) => [place, place.textContent]);

// The least share of its own size in which a drawing is shown: its words then have 11 px instead of 16. A wider one scrolls.
const SMALLEST = 11 / 16;

async function draw() {
  const theme = document.body.dataset.theme;
  const night = theme === "dark" || (theme !== "light" && dark.matches);
  mermaid.initialize({ startOnLoad: false, theme: night ? "dark" : "neutral", fontFamily: "inherit" });
  for (const [place, text] of diagrams) {
    place.textContent = text;
    delete place.dataset.processed;
  }
  await mermaid.run({ nodes: diagrams.map(([place]) => place) });
  for (const drawing of document.querySelectorAll(".mermaid svg")) {
    drawing.style.minWidth = `${SMALLEST * drawing.viewBox.baseVal.width}px`;
  }
}

let drawn = draw();
const again = () => (drawn = drawn.then(draw));
dark.addEventListener("change", again);
new MutationObserver(again).observe(document.body, { attributeFilter: ["data-theme"] });
