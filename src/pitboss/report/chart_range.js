// The part of time that all charts of a run show: buttons, a brush, drag, wheel and keys; and the read-out at the pointer.
// A report saved to a file and the page of the app have the same. In the app a script answers `chart-range` with finer data.
// @ts-check
(() => {
  'use strict';
  const { read, draw, valuesAt, thin, clock, el, px } = /** @type {any} */ (window).pitbossCharts;
  const STEP = 0.6; // a click shows this share of the time
  /** @typedef {{figure: HTMLElement, svg: SVGSVGElement, readout: Element | null, base: any, finer: any, hidden: Set<string>, place: any}} Chart */
  const charts = /** @type {Chart[]} */ (Array.from(document.querySelectorAll('figure[data-chart]'), (element) => {
    const figure = /** @type {HTMLElement} */ (element);
    const base = read(figure.dataset.chart);
    delete figure.dataset.chart; // it is long, and read once
    const svg = /** @type {SVGSVGElement} */ (figure.querySelector('svg[role=img]'));
    return { figure, svg, readout: figure.querySelector('.readout'), base, finer: null, hidden: new Set(), place: null };
  }));
  if (!charts.length) return;
  const whole = { start: Math.min(...charts.map((chart) => chart.base.start)), end: Math.max(...charts.map((chart) => chart.base.end)) };
  const least = Math.min(2 * 3_600_000, whole.end - whole.start);
  let shown = { ...whole };
  /** @type {number | null} */
  let pinned = null;
  /** @type {number | null} */
  let cursor = null;
  const isWhole = () => shown.start <= whole.start && shown.end >= whole.end;
  /** @param {Chart} chart */
  const dataOf = ({ base, finer }) => (finer && finer.start <= Math.max(shown.start, base.start) && finer.end >= Math.min(shown.end, base.end) ? finer : base);

  // Drawing: once for each frame, charts that have a width.
  /** @param {Chart} chart */
  const widthOf = (chart) => Math.floor(/** @type {Element} */ (chart.svg.parentElement).clientWidth);
  /** @param {Chart} chart @param {number} width */
  const drawChart = (chart, width) => {
    if (!width) { chart.place = null; return; }
    chart.place = { ...draw(chart.svg, dataOf(chart), { ...shown, isWhole: isWhole() }, chart.hidden, width), width };
    chart.figure.dataset.start = String(Math.round(shown.start));
    chart.figure.dataset.end = String(Math.round(shown.end));
    drawPin(chart);
    drawCursor(chart);
  };
  /** @param {Chart} chart @param {number} at */
  const xAt = (chart, at) => chart.place.left + (chart.place.room * (at - shown.start)) / (shown.end - shown.start || 1);
  /** @param {Chart} chart @param {number} clientX */
  const timeAt = (chart, clientX) => {
    const box = chart.svg.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * chart.place.width - chart.place.left;
    return shown.start + (Math.min(Math.max(x, 0), chart.place.room) / chart.place.room) * (shown.end - shown.start);
  };
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const [widths, rooms] = [charts.map(widthOf), toolbars.map((bar) => bar.width())]; // a width that is read after a change takes a layout of its own
      charts.forEach((chart, index) => drawChart(chart, widths[index]));
      toolbars.forEach((bar, index) => bar.describe(rooms[index]));
    });
  };

  // The cursor is at the same instant in all charts.
  /** @param {Chart} chart */
  const drawCursor = (chart) => {
    const line = chart.svg.querySelector('.cursor');
    if (!line || !chart.place) return;
    const isOn = cursor !== null && cursor >= shown.start && cursor <= shown.end;
    line.setAttribute('visibility', isOn ? 'visible' : 'hidden');
    chart.readout?.replaceChildren();
    if (!isOn || cursor === null) return;
    for (const end of ['x1', 'x2']) line.setAttribute(end, px(xAt(chart, cursor)));
    chart.readout?.append(`${clock(cursor)} UTC`);
    for (const [name, value] of valuesAt(dataOf(chart), cursor, chart.hidden)) {
      const strong = document.createElement('b');
      strong.textContent = value;
      chart.readout?.append(` · ${name} `, strong);
    }
  };
  const point = (/** @type {number | null} */ at) => {
    cursor = at === null ? null : Math.min(Math.max(at, shown.start), shown.end);
    charts.forEach(drawCursor);
  };
  // The selected decision is marked in all charts.
  /** @param {Chart} chart */
  const drawPin = (chart) => {
    chart.svg.querySelector('.pin')?.remove();
    if (!chart.place || pinned === null || pinned < shown.start || pinned > shown.end) return;
    const x = px(xAt(chart, pinned));
    chart.svg.append(el('line', { class: 'pin', x1: x, x2: x, y1: 14, y2: chart.place.bottom }));
  };
  document.addEventListener('decision-selected', (event) => { pinned = /** @type {CustomEvent} */ (event).detail.at; charts.forEach(drawPin); });

  // Moving.
  /** Shows a part of the time, moved inside what there is. @param {number} start @param {number} end */
  const show = (start, end) => {
    const length = Math.min(Math.max(end - start, least), whole.end - whole.start);
    const from = Math.min(Math.max(start, whole.start), whole.end - length);
    if (from === shown.start && from + length === shown.end) return;
    shown = { start: from, end: from + length };
    redraw();
    document.dispatchEvent(new CustomEvent('chart-range', { detail: { ...shown, isWhole: isWhole() } }));
  };
  /** @param {number} factor @param {number} [about] */
  const zoom = (factor, about) => {
    const middle = about ?? (pinned !== null && pinned > shown.start && pinned < shown.end ? pinned : (shown.start + shown.end) / 2);
    show(middle - (middle - shown.start) * factor, middle + (shown.end - middle) * factor);
  };
  /** @param {number} share */
  const pan = (share) => show(shown.start + (shown.end - shown.start) * share, shown.end + (shown.end - shown.start) * share);
  const actions = /** @type {Record<string, () => void>} */ ({
    'zoom-in': () => zoom(STEP),
    'zoom-out': () => zoom(1 / STEP),
    'pan-left': () => pan(-0.4),
    'pan-right': () => pan(0.4),
    'zoom-reset': () => show(whole.start, whole.end),
  });

  /** Follows a pointer that is down until it is up; `done` is told whether it was let go or taken away. @param {Element} element @param {PointerEvent} down @param {(event: PointerEvent) => void} move @param {(event: PointerEvent, isUp: boolean) => void} done */
  const follow = (element, down, move, done) => {
    const stop = new AbortController();
    let hasMoved = false;
    const moved = (/** @type {PointerEvent} */ event) => {
      if (event.pointerId !== down.pointerId || (!hasMoved && Math.abs(event.clientX - down.clientX) < 5)) return;
      hasMoved = true;
      move(event);
    };
    const end = (/** @type {PointerEvent} */ event) => {
      if (event.pointerId !== down.pointerId) return;
      stop.abort();
      if (hasMoved) done(event, event.type === 'pointerup');
    };
    addEventListener('pointermove', moved, stop);
    addEventListener('pointerup', end, stop);
    addEventListener('pointercancel', end, stop);
  };

  // Bars above the first chart of each section: the range, buttons, and the whole time as a strip with a brush.
  /** @param {Element} section */
  const addToolbar = (section) => {
    const bar = document.createElement('div');
    bar.className = 'chart-tools';
    bar.setAttribute('role', 'toolbar');
    bar.setAttribute('aria-label', 'Part of time that all charts show');
    const range = document.createElement('output');
    const strip = /** @type {SVGSVGElement} */ (el('svg', { class: 'strip', height: 34, 'aria-hidden': 'true' }));
    const buttons = /** @type {HTMLButtonElement[]} */ ([]);
    bar.append(range);
    for (const [name, sign, label] of [['pan-left', '←', 'Earlier'], ['pan-right', '→', 'Later'], ['zoom-out', '−', 'Zoom out'], ['zoom-in', '+', 'Zoom in'], ['zoom-reset', 'All', 'Show all']]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.dataset.do = name;
      button.textContent = sign;
      button.title = label;
      button.setAttribute('aria-label', label);
      button.addEventListener('click', actions[name]);
      buttons.push(button);
    }
    bar.append(...buttons, strip);
    section.querySelector('figure.timed')?.before(bar);

    const line = charts[0].base.panes[0].lines?.[0];
    const [outline, window_] = [el('path', { class: 'outline' }), el('rect', { class: 'window', y: 0.5, height: 33 })];
    strip.append(outline, window_);
    let drawn = 0;
    const width = () => Math.max(strip.clientWidth, 1);
    /** @param {number} width */
    const describe = (width) => {
      const x = (/** @type {number} */ at) => (width * (at - whole.start)) / (whole.end - whole.start || 1);
      if (line && drawn !== width) {
        const kept = thin(line, whole, width / 2);
        const values = kept.map((/** @type {number} */ index) => line.values[index]);
        const [low, high] = [Math.min(...values), Math.max(...values)];
        outline.setAttribute('d', `M${kept.map((/** @type {number} */ index) => `${px(x(line.at[index]))} ${px(30 - (26 * (line.values[index] - low)) / (high - low || 1))}`).join('L')}`);
        drawn = width;
      }
      window_.setAttribute('x', px(x(shown.start)));
      window_.setAttribute('width', px(Math.max(x(shown.end) - x(shown.start), 3)));
      range.textContent = isWhole() ? 'Drag over a chart or the strip to zoom' : `${clock(shown.start)} to ${clock(shown.end)} UTC`;
      for (const button of buttons) button.disabled = isWhole() && button.dataset.do !== 'zoom-in';
    };
    strip.addEventListener('pointerdown', (down) => {
      if (down.button !== 0) return;
      const box = strip.getBoundingClientRect();
      const at = (/** @type {PointerEvent} */ event) => whole.start + ((event.clientX - box.left) / box.width) * (whole.end - whole.start);
      const begin = { ...shown, at: at(down) };
      const moves = !isWhole() && begin.at > shown.start && begin.at < shown.end;
      const move = (/** @type {PointerEvent} */ event) => {
        const by = at(event) - begin.at;
        if (moves) show(begin.start + by, begin.end + by);
        else show(Math.min(begin.at, at(event)), Math.max(begin.at, at(event)));
      };
      follow(strip, down, move, () => {});
    });
    return { width, describe };
  };
  const toolbars = [...new Set(charts.map((chart) => chart.figure.closest('section')))].flatMap((section) => (section ? [addToolbar(section)] : []));

  // Pointer, wheel and keys on a chart.
  /** A drag selects a part; in a part, it moves it, and with Shift selects. @param {Chart} chart @param {PointerEvent} down */
  const startDrag = (chart, down) => {
    const begin = { ...shown, at: timeAt(chart, down.clientX) };
    const perPixel = ((chart.place.width / chart.svg.getBoundingClientRect().width) * (shown.end - shown.start)) / chart.place.room;
    /** @type {SVGElement | null} */
    let area = null;
    const selects = isWhole() || down.shiftKey;
    const move = (/** @type {PointerEvent} */ event) => {
      if (!selects) {
        const by = (down.clientX - event.clientX) * perPixel;
        show(begin.start + by, begin.end + by);
        return;
      }
      const [from, to] = [begin.at, timeAt(chart, event.clientX)].sort((one, two) => one - two);
      area ??= el('rect', { class: 'selecting', y: 14, height: chart.place.bottom - 14 });
      if (!area) return;
      area.setAttribute('x', px(xAt(chart, from)));
      area.setAttribute('width', px(xAt(chart, to) - xAt(chart, from)));
      chart.svg.append(area);
    };
    follow(chart.svg, down, move, (event, isUp) => {
      area?.remove();
      const [from, to] = [begin.at, timeAt(chart, event.clientX)].sort((one, two) => one - two);
      if (selects && isUp) show(from, to);
    });
  };
  for (const chart of charts) {
    const { svg, figure } = chart;
    svg.addEventListener('pointermove', (event) => { if (chart.place) point(timeAt(chart, event.clientX)); });
    svg.addEventListener('pointerleave', () => point(null));
    svg.addEventListener('blur', () => point(null));
    svg.addEventListener('wheel', (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault(); // a plain wheel scrolls the page
        zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(chart, event.clientX));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !isWhole()) {
        event.preventDefault();
        pan(event.deltaX / 1000);
      }
    }, { passive: false });
    svg.addEventListener('dblclick', actions['zoom-reset']);
    svg.addEventListener('pointerdown', (event) => {
      if (event.button === 0 && chart.place && !(/** @type {Element} */ (event.target).closest('a'))) startDrag(chart, event);
    });
    svg.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey) return;
      const does = { '+': 'zoom-in', '=': 'zoom-in', '-': 'zoom-out', 0: 'zoom-reset' }[event.key]
        || (event.shiftKey && event.key === 'ArrowLeft' ? 'pan-left' : event.shiftKey && event.key === 'ArrowRight' ? 'pan-right' : '');
      const jump = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1000, End: 1000 }[event.key];
      if (does) actions[does]();
      else if (jump) point((cursor ?? shown.end) + (jump * (shown.end - shown.start)) / 200);
      else return;
      event.preventDefault();
    });
    figure.addEventListener('chart-data', (event) => { chart.finer = read(/** @type {CustomEvent} */ (event).detail); redraw(); });
    for (const entry of /** @type {NodeListOf<HTMLElement>} */ (figure.querySelectorAll('.legend [data-line]'))) {
      entry.setAttribute('role', 'switch');
      entry.tabIndex = 0;
      entry.setAttribute('aria-checked', 'true');
      const toggle = () => {
        const name = String(entry.dataset.line);
        if (!chart.hidden.delete(name)) chart.hidden.add(name);
        entry.setAttribute('aria-checked', String(!chart.hidden.has(name)));
        redraw();
      };
      entry.addEventListener('click', toggle);
      entry.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); toggle(); } });
    }
  }

  // A link with a range shows it, with some time before and after, and leads to its chart.
  document.addEventListener('click', (event) => {
    const link = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('a[data-range]'));
    const chart = link && charts.find(({ figure }) => `#${figure.id}` === link.getAttribute('href'));
    if (!link || !chart) return;
    event.preventDefault();
    const [start, end] = String(link.dataset.range).split(' ').map(Number);
    const room = Math.max((end - start) * 0.6, 12 * (chart.base.panes[0].bars?.step || least));
    const folded = /** @type {HTMLDetailsElement | null} */ (chart.figure.closest('details'));
    if (folded) folded.open = true;
    show(start - room, end + room);
    chart.figure.scrollIntoView({ block: 'center' });
    chart.svg.focus({ preventScroll: true });
  });
  for (const folded of document.querySelectorAll('details.folded')) folded.addEventListener('toggle', redraw);
  new ResizeObserver(() => { if (widthOf(charts[0]) !== (charts[0].place?.width ?? 0)) redraw(); }).observe(/** @type {Element} */ (charts[0].svg.parentElement));
  redraw();
})();
