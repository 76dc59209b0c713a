// Draws the charts of a run from their data, for any part of time and any width. `chart_range.js` decides which part.
// The data is the `data-chart` of a figure (`chart_data.py`). Text of others enters through textContent alone.
// @ts-check
(() => {
  'use strict';
  const SVG = document.querySelector('svg')?.namespaceURI || null; // no address in a page that names no host
  const MINUTE = 60_000;
  const [HOUR, DAY] = [60 * MINUTE, 1440 * MINUTE];
  const STEPS = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
  const MONTHS = [1, 2, 3, 6, 12, 24, 60];
  const CANDLE = 4; // least width of a candle with its gap
  const MARK_ROOM = 7; // marks with less room than this on average would hide the price
  const MOST_SHADES = 40; // more positions than these are drawn in a lane of their own

  // Numbers and times.
  const formats = /** @type {Map<number, Intl.NumberFormat>} */ (new Map());
  /** @param {number} value @param {number} places */
  const fixed = (value, places) => {
    const format = formats.get(places) || new Intl.NumberFormat('en-US', { minimumFractionDigits: places, maximumFractionDigits: places });
    formats.set(places, format);
    return format.format(value);
  };
  /** @param {number} size */
  const digits = (size) => (size >= 10000 ? 1 : size >= 100 ? 2 : size >= 1 ? 4 : size >= 0.01 ? 6 : 8);
  /** @param {number} value @param {string} format @param {number} [places] */
  const text = (value, format, places) => {
    const body = fixed(Math.abs(value), places ?? (format === 'price' ? digits(Math.abs(value)) : 2));
    const sign = value < 0 && /[1-9]/.test(body) ? '\u2212' : '';
    return `${sign}${format === 'usd' ? '$' : ''}${body}${format === 'pct' ? '%' : ''}`;
  };
  /** @param {number} at */
  const clock = (at) => new Date(at).toISOString().slice(0, 16).replace('T', ' ');
  const MONTH_NAMES = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
  /** @param {number} at */
  const month = (at) => MONTH_NAMES[new Date(at).getUTCMonth()];

  /** Round values in a range, about `count` of them. @param {number} low @param {number} high @param {number} count @returns {{step: number, ticks: number[]}} */
  const valueTicks = (low, high, count) => {
    const raw = (high - low) / Math.max(count, 1);
    if (!(raw > 0) || !Number.isFinite(raw)) return { step: 1, ticks: [low] };
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * (/** @type {number} */ ([1, 2, 2.5, 5, 10].find((factor) => power * factor >= raw * 0.999)));
    const ticks = [];
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) ticks.push(index * step);
    return ticks.length < 2 ? valueTicks(low, high, count + 1) : { step, ticks }; // one value alone shows no scale
  };
  /** @param {number} value @param {number} step @param {string} format */
  const tickText = (value, step, format) => {
    if (Math.abs(value) >= 1e6) return text(value / 1e6, format, step >= 1e6 ? 0 : 2).replace(/%?$/, 'M$&');
    let places = 0;
    while (places < 8 && Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-6) places += 1;
    return text(value, format, places);
  };
  /** Round instants with a label, at most `most`. @param {number} start @param {number} end @param {number} most @returns {[number, string][]} */
  const timeTicks = (start, end, most) => {
    /** @type {[number, string][]} */
    const ticks = [];
    const step = STEPS.find((length) => (end - start) / length <= most);
    if (step) {
      for (let at = Math.ceil(start / step) * step; at <= end; at += step) {
        ticks.push([at, step < DAY && at % DAY ? clock(at).slice(11) : `${new Date(at).getUTCDate()} ${month(at)}`]);
      }
      return ticks;
    }
    const [first, last] = [new Date(start), new Date(end)].map((day) => day.getUTCFullYear() * 12 + day.getUTCMonth());
    const months = MONTHS.find((each) => (last - first) / each <= most) || 60;
    for (let number = first; number <= last; number += 1) {
      const at = Date.UTC(Math.floor(number / 12), number % 12, 1);
      if (number % months === 0 && at >= start && at <= end) ticks.push([at, `${months < 12 ? `${month(at)} ` : ''}${Math.floor(number / 12)}`]);
    }
    return ticks;
  };

  // Data.
  /** @param {number[]} steps @param {number} factor @param {number} [first] */
  const summed = (steps, factor, first = 0) => {
    const sums = new Float64Array(steps.length);
    let sum = 0;
    steps.forEach((step, index) => { sum += step; sums[index] = first + sum * factor; });
    return sums;
  };
  /** @param {any} packed */
  const points = (packed) => ({ at: summed(packed.at, packed.unit, packed.first), values: summed(packed.values, 1 / packed.scale) });
  /** @param {any} packed */
  const bars = (packed) => {
    /** @type {number[]} */
    const steps = [];
    for (let index = 0; index < packed.at.length; index += 2) for (let run = 0; run < packed.at[index]; run += 1) steps.push(packed.at[index + 1]);
    const [at, scale] = [summed(steps, packed.unit, packed.first), packed.scale];
    const [open, high, low, close] = [0, 1, 2, 3].map(() => new Float64Array(at.length));
    let last = 0;
    for (let index = 0; index < at.length; index += 1) {
      const from = last + packed.open[index];
      last = from + packed.close[index];
      open[index] = from / scale;
      close[index] = last / scale;
      high[index] = (Math.max(from, last) + packed.high[index]) / scale;
      low[index] = (Math.min(from, last) - packed.low[index]) / scale;
    }
    return { at, open, high, low, close, step: packed.step };
  };
  /** The data of a chart with its series as arrays. @param {string} json @returns {any} */
  const read = (json) => {
    const chart = JSON.parse(json);
    for (const pane of chart.panes) {
      for (const line of pane.lines || []) Object.assign(line, points(line.series));
      if (pane.bars) pane.bars = bars(pane.bars);
    }
    return chart;
  };
  /** The number of instants before one. @param {Float64Array} at @param {number} moment */
  const before = (at, moment) => {
    let [low, high] = [0, at.length];
    while (low < high) { const middle = (low + high) >> 1; if (at[middle] < moment) low = middle + 1; else high = middle; }
    return low;
  };
  /** Lowest, highest and last point of each column, in time order. @param {any} line @param {any} range @param {number} columns @returns {number[]} */
  const thin = (line, range, columns) => {
    const [first, last] = [Math.max(before(line.at, range.start) - 1, 0), Math.min(before(line.at, range.end) + 1, line.at.length)];
    /** @type {number[]} */
    const kept = [];
    if (last - first <= 3 * columns) { for (let index = first; index < last; index += 1) kept.push(index); return kept; }
    const width = (range.end - range.start) / columns;
    for (let index = first; index < last;) {
      const column = Math.floor((line.at[index] - range.start) / width);
      let [low, high, end] = [index, index, index];
      for (; end < last && Math.floor((line.at[end] - range.start) / width) === column; end += 1) {
        if (line.values[end] < line.values[low]) low = end;
        if (line.values[end] > line.values[high]) high = end;
      }
      kept.push(...new Set([Math.min(low, high), Math.max(low, high), end - 1]));
      index = end;
    }
    return kept;
  };
  /** The bars of a range, merged into at most `columns`: rows of at, open, high, low, close. @param {any} all @param {any} range @param {number} columns */
  const merged = (all, range, columns) => {
    const [first, last] = [Math.max(before(all.at, range.start - all.step + 1), 0), before(all.at, range.end)];
    const each = Math.max(1, Math.ceil((last - first) / columns));
    const rows = [];
    // groups begin at multiples of their size, so that they stay the same while a chart is moved
    for (let begin = first - (first % each); begin < last; begin += each) {
      const end = Math.min(begin + each, all.at.length);
      let [high, low] = [-Infinity, Infinity];
      for (let index = begin; index < end; index += 1) { high = Math.max(high, all.high[index]); low = Math.min(low, all.low[index]); }
      rows.push([all.at[begin], all.open[begin], high, low, all.close[end - 1]]);
    }
    return { rows, length: all.step * each };
  };

  // Elements.
  /** @param {string} name @param {Record<string, string | number>} [attributes] @param {...(Node | string)} children */
  const el = (name, attributes = {}, ...children) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.append(...children);
    return element;
  };
  /** @param {number} value */
  const px = (value) => value.toFixed(1);

  /** @param {any} frame @param {any} pane @param {number} columns */
  const drawLines = (frame, pane, columns) => [...frame.lines].reverse().flatMap((/** @type {any} */ line) => {
    const kept = thin(line, frame.range, /^(agent|h\d)$/.test(line.style) || line.area ? columns : columns / 2); // dashes need room
    if (!kept.length) return [];
    const path = kept.map((index) => `${px(frame.x(line.at[index]))} ${px(frame.y(line.values[index]))}`).join('L');
    if (!line.area) return [el('path', { class: `line ${line.style}`, d: `M${path}` })];
    const [zero, left, right] = [px(frame.y(0)), px(frame.x(line.at[kept[0]])), px(frame.x(line.at[kept[kept.length - 1]]))];
    const worst = kept.reduce((least, index) => (line.values[index] < line.values[least] ? index : least));
    const [x, y] = [frame.x(line.at[worst]), frame.y(line.values[worst])];
    const side = x > frame.width - 110 ? -9 : 9;
    const note = el('text', { class: 'worst', x: px(x + side), y: px(Math.min(y + 4, frame.height - 3)), 'text-anchor': side < 0 ? 'end' : 'start' }, `worst ${text(line.values[worst], pane.format)}`);
    return [
      el('path', { class: line.style, d: `M${left} ${zero}L${path}L${right} ${zero}Z` }),
      ...(line.values[worst] < 0 ? [el('circle', { class: 'worst', cx: px(x), cy: px(y), r: 3.5 }), note] : []),
    ];
  });

  /** Candles if there is room for them, else the range of each column with a line of closes. @param {any} frame @param {any} all */
  const drawBars = (frame, all) => {
    const visible = before(all.at, frame.range.end) - before(all.at, frame.range.start);
    const isNear = visible * CANDLE <= frame.width;
    const { rows, length } = merged(all, frame.range, isNear ? Infinity : Math.floor(frame.width / 1.5));
    const slot = frame.x(frame.range.start + length);
    if (!isNear) {
      const range = rows.map(([at, , high, low]) => `M${px(frame.x(at + length / 2))} ${px(frame.y(high))}V${px(frame.y(low))}`).join('');
      const closes = rows.map(([at, , , , close]) => `${px(frame.x(at + length / 2))} ${px(frame.y(close))}`).join('L');
      return [el('path', { class: 'range', d: range, 'stroke-width': px(Math.max(slot * 0.9, 1)) }), el('path', { class: 'close', d: `M${closes}` })];
    }
    const half = Math.max(Math.min(slot * 0.32, 7), 0.6);
    let wicks = '';
    const bodies = { up: '', down: '' };
    for (const [at, open, high, low, close] of rows) {
      const x = frame.x(at) + slot / 2;
      const [top, bottom] = [frame.y(Math.max(open, close)), frame.y(Math.min(open, close))];
      wicks += `M${px(x)} ${px(frame.y(high))}V${px(top)}M${px(x)} ${px(bottom)}V${px(frame.y(low))}`;
      bodies[close >= open ? 'up' : 'down'] += `M${px(x - half)} ${px(top)}h${px(2 * half)}V${px(bottom + 0.3)}h${px(-2 * half)}Z`;
    }
    return [el('path', { class: 'wick', d: wicks }), el('path', { class: 'candle up', d: bodies.up }), el('path', { class: 'candle down', d: bodies.down })];
  };

  /** Positions as shades with their levels; very many as a lane at the bottom. @param {any} frame @param {number[][]} holds */
  const drawHolds = (frame, holds) => {
    const shown = holds.filter(([, start, end]) => start < frame.range.end && (end ?? Infinity) > frame.range.start);
    const isLane = shown.length > MOST_SHADES;
    const [top, height] = isLane ? [frame.height - 7, 7] : [0, frame.height];
    return shown.flatMap(([isShort, start, end, stop, target]) => {
      const [left, right] = [Math.max(frame.x(start), 0), Math.min(frame.x(end ?? frame.range.end), frame.width)];
      const side = isShort ? 'short' : 'long';
      const title = el('title', {}, `${side} from ${clock(start)} ${end === null ? 'on, still open at the end' : `until ${clock(end)}`}`);
      const parts = [el('rect', { class: `held ${side}${isLane ? ' lane-of' : ''}`, x: px(left), y: px(top), width: px(Math.max(right - left, 1)), height }, title)];
      for (const [style, level] of /** @type {[string, number | null][]} */ ([['sl', stop], ['tp', target]])) {
        if (isLane || level === null || level === undefined || level < frame.low || level > frame.high) continue;
        parts.push(el('line', { class: `level ${style}`, x1: px(left), x2: px(right), y1: px(frame.y(level)), y2: px(frame.y(level)) }));
      }
      return parts;
    });
  };

  /** @param {any} mark @param {number} seq */
  const linked = (mark, seq) => (seq >= 0 ? el('a', { href: `#d${seq}`, tabindex: -1 }, mark) : mark);
  /** Marks at their places; those that would overlap share one. @param {any[]} items @param {number} cell @param {(item: any) => {x: number, y: number, kind: string, title: string, seq: number}} place @param {number} room */
  const drawMarks = (items, cell, place, room) => {
    /** @type {Map<string, any>} */
    const groups = new Map();
    for (const item of items) {
      const mark = place(item);
      const key = `${mark.kind} ${Math.round(mark.x / cell)} ${Math.round(mark.y / cell)}`;
      const group = groups.get(key);
      if (group) group.more += 1; else groups.set(key, { ...mark, more: 0 });
    }
    const hides = groups.size > room / MARK_ROOM;
    const shown = [...groups.values()].filter((mark) => !hides || mark.kind === 'liquidation');
    const scale = shown.length > 50 ? 0.78 : 1;
    const note = hides ? [el('text', { class: 'pane', x: room, y: 10, 'text-anchor': 'end' }, `${fixed(items.length, 0)} fills: zoom in to see them`)] : [];
    return el('g', { class: 'marks' }, ...note, ...shown.map((mark) => {
      const title = el('title', {}, mark.title + (mark.more ? ` and ${mark.more} more here` : ''));
      return linked(el('use', { href: `#m-${mark.kind}`, transform: `translate(${px(mark.x)} ${px(mark.y)}) scale(${scale})` }, title), mark.seq);
    }));
  };

  /** Highest and lowest value of a pane in a range. @param {any} pane @param {any} range @param {any[]} lines @param {number} columns */
  const extent = (pane, range, lines, columns) => {
    let [low, high] = [Infinity, -Infinity];
    const take = (/** @type {number} */ value) => { low = Math.min(low, value); high = Math.max(high, value); };
    for (const line of lines) for (const index of thin(line, range, columns)) take(line.values[index]);
    if (pane.bars) for (const [, , top, bottom] of merged(pane.bars, range, columns).rows) { take(top); take(bottom); }
    for (const [, at, price] of pane.marks || []) if (at >= range.start && at <= range.end) take(price);
    if (pane.level !== undefined && range.isWhole) take(pane.level);
    if (low > high) [low, high] = [0, 1];
    const gap = (high - low) * 0.06 || Math.abs(high) * 0.01 || 1;
    return pane.high === undefined ? [low - gap, high + gap] : [Math.min(low, pane.high - (pane.least || 1)) - gap, pane.high];
  };

  /** Draws a chart into its SVG element; the geometry that pointers need is returned. @param {SVGSVGElement} svg @param {any} chart @param {any} range @param {Set<string>} hidden @param {number} width */
  const draw = (svg, chart, range, hidden, width) => {
    const isNarrow = width < 560;
    const [left, right] = isNarrow ? [56, 10] : [68, 16];
    svg.classList.toggle('narrow', isNarrow);
    const room = width - left - right;
    const x = (/** @type {number} */ at) => (room * (at - range.start)) / (range.end - range.start || 1);
    const [under, over] = [el('g', { class: 'grid' }), /** @type {Node[]} */ ([])];
    let top = 14;
    for (const pane of chart.panes) {
      if (pane.label) { top += 26; over.push(el('text', { class: 'pane', x: left, y: top - 8 }, pane.label)); }
      const height = Math.round(pane.height * (isNarrow ? 0.78 : 1));
      const lines = (pane.lines || []).filter((/** @type {any} */ line) => !hidden.has(line.name));
      const [low, high] = extent(pane, range, lines, room);
      const frame = { range, width: room, height, low, high, x, lines, y: (/** @type {number} */ value) => height - (height * (value - low)) / (high - low || 1) };
      const { step, ticks } = valueTicks(low, high, Math.max(3, Math.round(height / 58)));
      for (const tick of ticks) {
        const y = px(top + frame.y(tick));
        under.append(el('line', { x1: left, x2: left + room, y1: y, y2: y }), el('text', { x: left - 7, y, dy: '0.32em', 'text-anchor': 'end' }, tickText(tick, step, pane.format)));
      }
      const inner = el('svg', { x: left, y: top, width: room, height });
      if (pane.holds) inner.append(...drawHolds(frame, pane.holds));
      if (pane.level !== undefined) inner.append(el('line', { class: 'start', x1: 0, x2: room, y1: px(frame.y(pane.level)), y2: px(frame.y(pane.level)) }));
      if (pane.bars) inner.append(...drawBars(frame, pane.bars));
      inner.append(...drawLines(frame, pane, room));
      if (pane.marks) {
        inner.append(drawMarks(pane.marks.filter((/** @type {any} */ mark) => mark[1] >= range.start && mark[1] <= range.end), 7, ([kind, at, price, size, reason, seq]) => ({
          x: x(at), y: frame.y(price), kind: chart.kinds[kind][0], seq,
          title: `${chart.kinds[kind][1]} ${chart.symbol}: ${size < 0 ? 'sell' : 'buy'} ${Math.abs(size)} at ${text(price, 'price')}, ${clock(at)} UTC (${chart.reasons[reason]})`,
        }), room));
      }
      over.push(inner);
      top += height;
    }
    if (chart.refused) {
      const lane = el('svg', { x: left, y: top, width: room, height: 24 }, el('rect', { class: 'lane', x: 0, y: 0, width: room, height: 24 }));
      lane.append(drawMarks(chart.refused.filter((/** @type {any} */ row) => row[0] >= range.start && row[0] <= range.end), 9, ([at, words, seq]) => (
        { x: x(at), y: 12, kind: 'refused', seq, title: `Refused at ${clock(at)} UTC: ${chart.words[words]}` }), Infinity));
      over.push(lane, el('text', { class: 'pane', x: left - 8, y: top + 16, 'text-anchor': 'end' }, 'refused'));
      top += 24;
    }
    for (const [at, label] of timeTicks(range.start, range.end, Math.max(2, Math.floor(room / (isNarrow ? 64 : 96))))) {
      const at_x = left + x(at);
      const anchor = at_x > width - 30 ? 'end' : 'middle';
      under.append(el('line', { x1: px(at_x), x2: px(at_x), y1: 14, y2: top }), el('text', { x: px(anchor === 'end' ? Math.min(at_x + right, width) : at_x), y: top + 18, 'text-anchor': anchor }, label));
    }
    for (const [at, name] of chart.halts || []) {
      if (at < range.start || at > range.end) continue;
      const at_x = left + x(at);
      over.push(el('g', { class: 'halt' }, el('title', {}, `Halt at ${clock(at)}: ${name}`), el('line', { x1: px(at_x), x2: px(at_x), y1: 14, y2: top }), el('text', { x: px(at_x + 5), y: 23 }, 'halt')));
    }
    svg.setAttribute('viewBox', `0 0 ${width} ${top + 30}`);
    svg.replaceChildren(...svg.querySelectorAll(':scope > title'), under, ...over, el('line', { class: 'cursor', y1: 14, y2: top }));
    return { left, room, bottom: top };
  };

  /** The values of a chart at an instant, as names and texts. @param {any} chart @param {number} at @param {Set<string>} hidden @returns {[string, string][]} */
  const valuesAt = (chart, at, hidden) => chart.panes.flatMap((/** @type {any} */ pane) => {
    const rows = (pane.lines || []).filter((/** @type {any} */ line) => !hidden.has(line.name) && line.at.length)
      .map((/** @type {any} */ line) => [line.name, text(line.values[Math.max(before(line.at, at + 1) - 1, 0)], pane.format)]);
    if (!pane.bars || !pane.bars.at.length) return rows;
    const index = Math.max(before(pane.bars.at, at + 1) - 1, 0);
    return [...rows, ...['open', 'high', 'low', 'close'].map((name) => [name[0].toUpperCase() + name.slice(1), text(pane.bars[name][index], 'price', Math.min(chart.places, digits(pane.bars[name][index])))])];
  });

  /** @type {any} */ (window).pitbossCharts = { read, draw, valuesAt, thin, clock, el, px };
})();
