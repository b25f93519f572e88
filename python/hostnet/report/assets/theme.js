// The theme: the reader's choice where there is one, else that of the system. Runs before anything is drawn.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  let chosen = null;
  try {
    chosen = localStorage.getItem("hostnet-theme");
  } catch {} // a file that was opened without storage
  const apply = () => {
    root.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
    const button = document.getElementById("theme");
    if (button) button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
    dispatchEvent(new Event("hostnet-theme"));
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      chosen = root.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("hostnet-theme", chosen);
      } catch {}
      apply();
    });
    document.getElementById("print").addEventListener("click", () => print());
  });
  // Paper is light.
  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    dispatchEvent(new Event("hostnet-theme"));
  });
  addEventListener("afterprint", apply);
})();
