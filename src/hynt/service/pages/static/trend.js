// Along a curve by pointer, touch or arrow keys. What is read out stands in the table below the chart already.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";

  function drawn(name, look) {
    const made = document.createElementNS(SVG, name);
    made.setAttribute("class", look);
    return made;
  }

  function follow(figure) {
    const chart = figure.querySelector("svg");
    const walker = figure.querySelector(".walker");
    const reading = figure.querySelector(".reading");
    const points = [...figure.querySelectorAll("table.curve tbody tr")].map((row) => {
      const [at, value, low, high] = [...row.children].map((cell) => cell.textContent);
      const told = low ? `${at}: ${value}, between ${low} and ${high}` : `${at}: ${value}`;
      return { x: Number(row.dataset.x), y: Number(row.dataset.y), told };
    });
    if (!points.length) return;
    const pointer = chart.querySelector(".pointer");
    const line = drawn("line", "cross");
    const dot = drawn("circle", "here");
    line.setAttribute("y1", figure.dataset.top);
    line.setAttribute("y2", figure.dataset.bottom);
    dot.setAttribute("r", "5");
    let now = 0;

    function show(index) {
      now = Math.max(0, Math.min(points.length - 1, index));
      const point = points[now];
      line.setAttribute("x1", point.x);
      line.setAttribute("x2", point.x);
      dot.setAttribute("cx", point.x);
      dot.setAttribute("cy", point.y);
      if (!pointer.childElementCount) pointer.append(line, dot);
      reading.textContent = point.told;
      walker.setAttribute("aria-valuenow", String(now));
      walker.setAttribute("aria-valuetext", point.told);
    }

    function nearest(event) {
      const box = chart.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      let best = 0;
      points.forEach((point, index) => {
        if (Math.abs(point.x - x) < Math.abs(points[best].x - x)) best = index;
      });
      show(best);
    }

    chart.addEventListener("pointermove", nearest);
    chart.addEventListener("pointerdown", nearest);
    walker.addEventListener("focus", () => show(now));
    walker.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
      if (event.key in steps) show(now + steps[event.key]);
      else if (event.key === "Home") show(0);
      else if (event.key === "End") show(points.length - 1);
      else return;
      event.preventDefault();
    });
  }

  document.querySelectorAll("figure.trend").forEach(follow);
})();
