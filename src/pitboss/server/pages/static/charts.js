// Zoom and pan of the charts of a run. All charts show the same part of time; the server draws it (`/runs/ID/charts/PART`).
// @ts-check
(() => {
  'use strict';
  const bar = /** @type {HTMLElement | null} */ (document.querySelector('.run-bar'));
  const first = /** @type {HTMLElement | null} */ (document.querySelector('figure[data-part]'));
  if (!bar || !first) return;
  const run = bar.dataset.run;
  const { complain } = /** @type {any} */ (window).pitboss;
  const SVG = 'http://www.w3.org/2000/svg';
  const STEP = 0.6; // a click shows this share of the time
  const figures = () => /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll('figure[data-part]')));
  const whole = figures().reduce(
    (range, figure) => ({ start: Math.min(range.start, Number(figure.dataset.start)), end: Math.max(range.end, Number(figure.dataset.end)) }),
    { start: Infinity, end: -Infinity },
  );
  const least = Math.min(10 * 60_000, whole.end - whole.start);
  let shown = { ...whole };
  /** @type {number | null} */
  let pinned = null;

  // Geometry: what the read-out of a chart knows about its drawing.
  /** @param {Element} svg */
  const frameOf = (svg) => {
    const data = JSON.parse(/** @type {SVGElement} */ (svg).dataset.hover || '{}');
    return /** @type {{left: number, right: number, width: number, start: number, end: number}} */ (data);
  };
  /** @param {Element} svg @param {number} clientX */
  const timeAt = (svg, clientX) => {
    const frame = frameOf(svg);
    const box = svg.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * frame.width;
    return frame.start + ((Math.min(Math.max(x, frame.left), frame.right) - frame.left) / (frame.right - frame.left)) * (frame.end - frame.start);
  };

  // The line at the decision that is selected or open.
  const drawPin = () => {
    for (const old of document.querySelectorAll('line.pin')) old.remove();
    if (pinned === null) return;
    for (const svg of document.querySelectorAll('figure[data-part] svg[data-hover]')) {
      const frame = frameOf(svg);
      if (pinned < frame.start || pinned > frame.end) continue;
      const cursor = svg.querySelector('.cursor');
      const x = String(frame.left + ((frame.right - frame.left) * (pinned - frame.start)) / (frame.end - frame.start || 1));
      const line = document.createElementNS(SVG, 'line');
      line.setAttribute('class', 'pin');
      for (const [name, value] of [['x1', x], ['x2', x], ['y1', cursor?.getAttribute('y1')], ['y2', cursor?.getAttribute('y2')]]) line.setAttribute(String(name), String(value));
      svg.append(line);
    }
  };
  document.addEventListener('decision-selected', (event) => {
    pinned = /** @type {CustomEvent} */ (event).detail.at;
    drawPin();
  });

  // Drawing: one request for each chart in sight at a time; only the newest wish counts.
  let busy = false;
  let again = false;
  const isWhole = () => shown.start <= whole.start && shown.end >= whole.end;
  /** @param {HTMLElement} figure */
  const redraw = async (figure) => {
    const part = String(figure.dataset.part).split('/').map(encodeURIComponent).join('/');
    const query = isWhole() ? '' : `?from=${Math.round(shown.start)}&to=${Math.round(shown.end)}`;
    const reply = await fetch(`/runs/${run}/charts/${part}${query}`, { headers: { Accept: 'text/html' } });
    if (!reply.ok) throw new Error(`the chart could not be drawn (${reply.status})`);
    const place = document.createElement('template');
    place.innerHTML = await reply.text(); // markup of this server
    const fresh = /** @type {HTMLElement | null} */ (place.content.querySelector('figure'));
    if (!fresh) return;
    const hadFocus = figure.contains(document.activeElement);
    const scrolled = figure.querySelector('.scroll')?.scrollLeft || 0;
    figure.replaceWith(fresh);
    fresh.dispatchEvent(new CustomEvent('chart-added', { bubbles: true }));
    prepare(fresh);
    const scroll = fresh.querySelector('.scroll');
    if (scroll) scroll.scrollLeft = scrolled;
    if (hadFocus) /** @type {SVGElement | null} */ (fresh.querySelector('svg[role=img]'))?.focus({ preventScroll: true });
  };
  const draw = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      do {
        again = false;
        await Promise.all(figures().filter((figure) => !figure.closest('details:not([open])')).map(redraw));
      } while (again);
      drawPin();
    } catch (error) {
      complain(error);
    } finally {
      busy = false;
    }
  };
  /** Shows a part of the time, moved inside what there is. @param {number} start @param {number} end */
  const show = (start, end) => {
    const length = Math.min(Math.max(end - start, least), whole.end - whole.start);
    const from = Math.min(Math.max(start, whole.start), whole.end - length);
    if (from === shown.start && from + length === shown.end) return;
    shown = { start: from, end: from + length };
    describe();
    draw();
  };
  /** @param {number} factor @param {number} [about] */
  const zoom = (factor, about) => {
    const middle = about ?? (pinned !== null && pinned > shown.start && pinned < shown.end ? pinned : (shown.start + shown.end) / 2);
    show(middle - (middle - shown.start) * factor, middle + (shown.end - middle) * factor);
  };
  /** @param {number} share */
  const pan = (share) => show(shown.start + (shown.end - shown.start) * share, shown.end + (shown.end - shown.start) * share);
  const reset = () => show(whole.start, whole.end);
  const actions = /** @type {Record<string, () => void>} */ ({
    'zoom-in': () => zoom(STEP),
    'zoom-out': () => zoom(1 / STEP),
    'pan-left': () => pan(-0.4),
    'pan-right': () => pan(0.4),
    'zoom-reset': reset,
  });

  // Buttons above the charts of each section.
  const clock = (/** @type {number} */ at) => new Date(at).toISOString().slice(0, 16).replace('T', ' ');
  /** @type {HTMLElement[]} */
  const toolbars = [];
  for (const section of new Set(figures().map((figure) => figure.closest('section')))) {
    if (!section) continue;
    const tools = document.createElement('div');
    tools.className = 'chart-tools';
    tools.setAttribute('role', 'toolbar');
    tools.setAttribute('aria-label', 'Zoom');
    const range = document.createElement('output');
    tools.append(range);
    for (const [name, sign, label] of [['pan-left', '←', 'Earlier'], ['pan-right', '→', 'Later'], ['zoom-out', '−', 'Zoom out'], ['zoom-in', '+', 'Zoom in'], ['zoom-reset', 'All', 'Show all']]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.dataset.do = name;
      button.textContent = sign;
      button.setAttribute('aria-label', label);
      button.title = label;
      button.addEventListener('click', actions[name]);
      tools.append(button);
    }
    section.querySelector('h2')?.after(tools);
    toolbars.push(tools);
  }
  const describe = () => {
    for (const tools of toolbars) {
      const range = tools.querySelector('output');
      if (range) range.textContent = isWhole() ? 'Drag to select, or scroll with Ctrl' : `${clock(shown.start)} to ${clock(shown.end)} UTC`;
      for (const name of ['pan-left', 'pan-right', 'zoom-out', 'zoom-reset']) {
        /** @type {HTMLButtonElement} */ (tools.querySelector(`[data-do=${name}]`)).disabled = isWhole();
      }
    }
  };

  // Wheel, drag and keys on a chart.
  /** @param {HTMLElement} figure */
  const prepare = (figure) => {
    const svg = /** @type {SVGSVGElement | null} */ (figure.querySelector('svg[data-hover]'));
    if (!svg) return;
    svg.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(svg, event.clientX));
    }, { passive: false });
    svg.addEventListener('dblclick', reset);
    svg.addEventListener('keydown', (event) => {
      const does = { '+': 'zoom-in', '=': 'zoom-in', '-': 'zoom-out', 0: 'zoom-reset' }[event.key]
        || (event.shiftKey && event.key === 'ArrowLeft' ? 'pan-left' : event.shiftKey && event.key === 'ArrowRight' ? 'pan-right' : '');
      if (!does || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopImmediatePropagation(); // the read-out moves with plain arrows
      actions[does]();
    }, { capture: true });
    svg.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || event.pointerType === 'touch' || /** @type {Element} */ (event.target).closest('a')) return;
      startDrag(svg, event);
    });
  };

  /** A drag selects a part; in a part, it moves it, and with Shift selects. @param {SVGSVGElement} svg @param {PointerEvent} down */
  const startDrag = (svg, down) => {
    const frame = frameOf(svg);
    const begin = { ...shown, at: timeAt(svg, down.clientX), x: down.clientX };
    const selects = isWhole() || down.shiftKey;
    const perPixel = ((frame.width / svg.getBoundingClientRect().width) * (frame.end - frame.start)) / (frame.right - frame.left);
    /** @type {SVGRectElement | null} */
    let area = null;
    const move = (/** @type {PointerEvent} */ event) => {
      if (Math.abs(event.clientX - begin.x) < 5 && !area) return;
      if (!selects) {
        const by = (begin.x - event.clientX) * perPixel;
        show(begin.start + by, begin.end + by);
        return;
      }
      const x = (/** @type {number} */ at) => frame.left + ((frame.right - frame.left) * (at - frame.start)) / (frame.end - frame.start);
      const [from, to] = [begin.at, timeAt(svg, event.clientX)].sort((one, two) => one - two);
      if (!area) {
        area = /** @type {SVGRectElement} */ (document.createElementNS(SVG, 'rect'));
        area.setAttribute('class', 'selecting');
        const cursor = svg.querySelector('.cursor');
        area.setAttribute('y', cursor?.getAttribute('y1') || '0');
        area.setAttribute('height', String(Number(cursor?.getAttribute('y2') || 0) - Number(cursor?.getAttribute('y1') || 0)));
        svg.append(area);
      }
      area.setAttribute('x', String(x(from)));
      area.setAttribute('width', String(x(to) - x(from)));
    };
    const up = (/** @type {PointerEvent} */ event) => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', up);
      removeEventListener('pointercancel', up);
      if (!area) return;
      area.remove();
      const [from, to] = [begin.at, timeAt(svg, event.clientX)].sort((one, two) => one - two);
      show(from, to);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up);
    addEventListener('pointercancel', up);
  };

  for (const figure of figures()) prepare(figure);
  for (const folded of document.querySelectorAll('details.folded')) {
    folded.addEventListener('toggle', () => { if (!isWhole() && folded.querySelector('figure[data-part]')) draw(); });
  }
  describe();
})();
