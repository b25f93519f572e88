// Tables that sort and filter, the choice of a host's picture, and the curves.
(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- tables

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.v !== undefined) return cell.dataset.v === "inf" ? Infinity : Number(cell.dataset.v);
    return cell.textContent.trim();
  };
  const before = (a, b) => {
    const empty = (v) => v === "" || v === "–";
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  for (const table of all(".sortable")) {
    const body = table.querySelector("tbody");
    const rows = [...body.rows];
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const order = was === "descending" ? "ascending" : was === "ascending" ? null : "descending";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        let sorted = rows;
        if (order) {
          head.setAttribute("aria-sort", order);
          const sign = order === "ascending" ? 1 : -1;
          const missing = (v) => v === "" || v === "–";
          sorted = [...rows].sort((r, s) => {
            const [a, b] = [keyOf(r, column), keyOf(s, column)];
            return missing(a) || missing(b) ? before(a, b) : sign * before(a, b);
          });
        }
        body.append(...sorted);
      });
    });
    const field = table.querySelector(".filter");
    field?.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((w) => text.includes(w));
      }
    });
  }

  // ---- pictures

  for (const group of all(".choice")) {
    const pictures = all(":scope > article", group);
    const bar = document.createElement("div");
    bar.className = "tabs";
    if (pictures.length <= 8) bar.setAttribute("role", "tablist");
    const show = (chosen) => {
      pictures.forEach((p, i) => p.classList.toggle("hidden", i !== chosen));
      all("button", bar).forEach((b, i) => b.setAttribute("aria-selected", String(i === chosen)));
    };
    // Many names are a list that unfolds.
    const list = pictures.length > 8 ? document.createElement("select") : null;
    if (list) {
      list.setAttribute("aria-label", "Shown below");
      list.append(...pictures.map((p, i) => new Option(p.dataset.name, i)));
      list.addEventListener("change", () => show(Number(list.value)));
      bar.append(list);
    }
    pictures.forEach((p, i) => {
      if (list) return;
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("role", "tab");
      button.textContent = p.dataset.name;
      button.addEventListener("click", () => show(i));
      bar.append(button);
    });
    group.prepend(bar);
    group.classList.add("tabbed");
    show(0);
  }

  // ---- curves

  const charts = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const nice = (v) => {
    if (v === null || v === undefined) return "–";
    const size = Math.abs(v);
    if (size !== 0 && (size >= 1e9 || size < 1e-3)) return v.toExponential(1);
    return Number(v.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
  };
  const font = (weight = "") => `${weight} 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif`.trim();

  const joined = (data) => {
    // Each curve has its own x values; an interval adds two columns to its curve.
    const tables = data.curves.map((c) => [c.x, c.y, ...(c.low ? [c.low, c.high] : [])]);
    return uPlot.join(tables, tables.map((t) => t.map(() => 2)));
  };
  // The value of a curve that is nearest to the pointer, because curves need not share their x values.
  const nearest = (u, series, at) => {
    const values = u.data[series];
    if (values[at] != null) return at;
    let [left, right] = [at, at];
    while (left >= 0 && values[left] == null) left--;
    while (right < values.length && values[right] == null) right++;
    if (left < 0) return right < values.length ? right : at;
    if (right >= values.length) return left;
    const x = u.data[0];
    return x[at] - x[left] <= x[right] - x[at] ? left : right;
  };
  const whisker = (u) => {
    // Error bars of curves with an interval.
    const { ctx } = u;
    ctx.save();
    u.series.forEach((s, i) => {
      if (!s.interval || !s.show) return;
      ctx.strokeStyle = s._stroke ?? colour(s.ink);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      for (let k = 0; k < u.data[0].length; k++) {
        const [low, high] = [u.data[i + 1][k], u.data[i + 2][k]];
        if (low == null || high == null) continue;
        const x = u.valToPos(u.data[0][k], "x", true);
        const [a, b] = [u.valToPos(low, "y", true), u.valToPos(high, "y", true)];
        const w = 4 * devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(x, a);
        ctx.lineTo(x, b);
        ctx.moveTo(x - w, a);
        ctx.lineTo(x + w, a);
        ctx.moveTo(x - w, b);
        ctx.lineTo(x + w, b);
        ctx.stroke();
      }
    });
    ctx.restore();
  };

  const options = (data, width) => {
    const named = new Map(data.ticks);
    const places = [...named.keys()];
    const series = [{ label: "at", value: (u, v) => (v == null ? "–" : places.length ? place(v) : nice(v)) }];
    const percent = data.x === "percentile";
    const place = (v) => {
      if (percent) {
        const f = 100 * (1 - 10 ** -v);
        return `${f >= 99 ? f.toFixed(Math.min(6, Math.ceil(v) - 1)) : f.toFixed(0)} %`;
      }
      return named.get(v) ?? nice(v);
    };
    data.curves.forEach((c) => {
      const ink = `--c${c.colour % 8}`;
      series.push({
        label: c.name,
        ink,
        interval: Boolean(c.low),
        stroke: () => colour(ink),
        fill: undefined,
        width: 2,
        paths: c.lines ? undefined : () => null,
        dash: c.colour >= 8 ? [6, 4] : undefined,
        spanGaps: true,
        points: { show: data.points || !c.lines, size: c.lines ? 7 : 10, width: c.lines ? 1 : 2, fill: () => colour(c.lines ? ink : "--panel"), stroke: () => colour(ink) },
        value: (u, v, s, at) => {
          if (v == null) return "–";
          const i = u.series.findIndex((x) => x.label === c.name);
          const half = c.low && at != null ? ` (${nice(u.data[i + 1][at])} to ${nice(u.data[i + 2][at])})` : "";
          return nice(v) + half;
        },
      });
      if (c.low) for (const end of ["low", "high"]) series.push({ label: `${c.name} ${end}`, show: true, stroke: "transparent", width: 0, points: { show: false }, class: "end" });
    });
    const axis = (more) => ({
      stroke: () => colour("--soft"),
      grid: { stroke: () => colour("--line"), width: 1 },
      ticks: { stroke: () => colour("--line"), width: 1 },
      font: font(),
      labelFont: font(),
      ...more,
    });
    const x = axis({ label: data.x, labelSize: 20, size: 34 });
    if (places.length) {
      // Names that would run into each other are left out.
      x.splits = (u, i, min, max) => {
        const room = (u.bbox?.width ?? 600) / devicePixelRatio || width - 80;
        let last = -Infinity;
        return places.filter((p) => {
          const at = ((p - min) / (max - min)) * room;
          if (p < min - 1e-9 || p > max + 1e-9 || at - last < 7 * String(named.get(p)).length + 8) return false;
          last = at;
          return true;
        });
      };
      x.values = (u, splits) => splits.map((p) => named.get(p));
    } else {
      x.values = (u, splits) => splits.map(nice);
    }
    const y = axis({ values: (u, splits) => splits.map((v) => (v == null ? "" : nice(v))), size: 62 });
    const pad = places.length && !percent ? 0.3 : 0;
    return {
      width,
      height: Math.round(Math.min(300, Math.max(210, width * 0.55))),
      scales: {
        x: { time: false, range: (u, min, max) => [min - pad, max === min ? min + 1 : max + pad] },
        y: {
          distr: data.logY ? 3 : 1,
          range: (u, min, max) => {
            if (min == null) return [0, 1];
            if (data.logY) return uPlot.rangeLog(min, max, 10, false);
            const low = data.zero ? Math.min(0, min) : min;
            return [low, max > low ? max + 0.06 * (max - low) : low + 1];
          },
        },
      },
      axes: [x, y],
      series,
      legend: { live: true },
      cursor: { dataIdx: nearest, drag: { x: true, y: false }, sync: data.sync ? { key: data.sync, setSeries: false } : undefined, points: { size: 7 } },
      hooks: { draw: [whisker] },
    };
  };

  const make = (place) => {
    const data = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const width = Math.floor(place.clientWidth);
    if (width < 50) return;
    const chart = new uPlot(options(data, width), joined(data), place);
    // The ends of intervals are part of their curve, and no curves of their own.
    const rows = all(".u-legend .u-series", place);
    chart.series.forEach((s, i) => {
      if (s.class === "end") rows[i]?.remove();
    });
    const marks = () =>
      chart.series.forEach((s, i) => {
        const marker = rows[i]?.querySelector(".u-marker");
        if (marker && s.ink) marker.style.borderColor = colour(s.ink);
      });
    charts.push({ chart, place, marks });
  };
  const fit = () => {
    for (const { chart, place } of charts) {
      const width = Math.floor(place.clientWidth);
      if (width > 50 && width !== chart.width) chart.setSize({ width, height: Math.round(Math.min(300, Math.max(210, width * 0.55))) });
    }
  };
  if (typeof uPlot !== "undefined") {
    // Charts are drawn when they come near the screen, so that a page of many is there at once.
    const places = all("[data-chart]");
    const watch = new IntersectionObserver(
      (seen) => {
        for (const entry of seen) {
          if (!entry.isIntersecting) continue;
          watch.unobserve(entry.target);
          make(entry.target);
        }
      },
      { rootMargin: "600px" },
    );
    places.forEach((p) => watch.observe(p));
    const missing = () => places.filter((p) => !charts.some((c) => c.place === p)).forEach((p) => (watch.unobserve(p), make(p)));
    addEventListener("hostnet-theme", () => charts.forEach(({ chart, marks }) => (marks(), chart.redraw(false, true))));
    addEventListener("resize", fit);
    addEventListener("beforeprint", () => {
      document.body.classList.add("printing");
      missing();
      fit();
    });
    addEventListener("afterprint", () => {
      document.body.classList.remove("printing");
      fit();
    });
  }
})();
