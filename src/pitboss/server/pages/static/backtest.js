// The form of a backtest: the range on the chart and in the fields is the same, and the estimate follows every change.
// @ts-check
(() => {
  'use strict';
  const { send, complain, debounce } = window.pitboss;
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById('backtest'));
  if (!form) return;
  /** @template {HTMLElement} E @param {string} id @returns {E} */
  const byId = (id) => /** @type {any} */ (document.getElementById(id));
  const chart = /** @type {SVGSVGElement | null} */ (/** @type {unknown} */ (document.getElementById('range-chart')));
  /** @param {string} name */
  const input = (name) => /** @type {HTMLInputElement | null} */ (form.elements.namedItem(name));

  // Range -----------------------------------------------------------------------------------------------------------

  /** @type {{start: number, end: number, left: number, width: number}} */
  const frame = chart ? JSON.parse(chart.dataset.frame || '{}') : { start: 0, end: 1, left: 0, width: 1 };
  /** @param {string} name */
  const moment = (name) => Date.parse(`${input(name)?.value || ''}Z`);
  /** @param {number} at */
  const text = (at) => new Date(at).toISOString().slice(0, 16);
  /** @param {number} at */
  const x = (at) => frame.left + (frame.width * (at - frame.start)) / (frame.end - frame.start);

  const draw = () => {
    const from = moment('from');
    const to = moment('to');
    const readout = document.getElementById('range-text');
    if (!chart || Number.isNaN(from) || Number.isNaN(to)) return;
    const [left, right] = [from, to].map((at) => Math.min(Math.max(x(at), frame.left), frame.left + frame.width));
    for (const [key, at, place] of /** @type {[string, number, number][]} */ ([['from', from, left], ['to', to, right]])) {
      const handle = chart.querySelector(`[data-handle=${key}]`);
      handle?.setAttribute('transform', `translate(${place.toFixed(1)} 0)`);
      handle?.setAttribute('aria-valuenow', String(at));
      handle?.setAttribute('aria-valuetext', text(at).replace('T', ' '));
    }
    /** @param {string} selector @param {number} begin @param {number} end */
    const span = (selector, begin, end) => {
      const rect = chart.querySelector(selector);
      rect?.setAttribute('x', begin.toFixed(1));
      rect?.setAttribute('width', Math.max(0, end - begin).toFixed(1));
    };
    span('[data-side=before]', frame.left, left);
    span('[data-side=after]', right, frame.left + frame.width);
    span('.inside', left, right);
    if (readout) readout.textContent = to > from ? `${((to - from) / 86400000).toLocaleString('en', { maximumFractionDigits: 1 })} days` : 'the range is empty';
  };

  /** Moves an end of the range, at whole hours, and not beyond the other end. @param {string} name @param {number} at */
  const move = (name, at) => {
    const field = input(name);
    const other = moment(name === 'from' ? 'to' : 'from');
    if (!field || Number.isNaN(at + other)) return; // a field is empty while it is typed
    let place = Math.round(at / 3600000) * 3600000;
    place = name === 'from' ? Math.min(place, other - 3600000) : Math.max(place, other + 3600000);
    field.value = text(Math.min(Math.max(place, frame.start), frame.end));
    draw();
    estimateSoon();
  };

  if (chart) {
    /** @param {PointerEvent} event */
    const instant = (event) => {
      const box = chart.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      return frame.start + ((place - frame.left) / frame.width) * (frame.end - frame.start);
    };
    let held = '';
    chart.addEventListener('pointerdown', (event) => {
      const handle = /** @type {SVGElement | null} */ (/** @type {Element} */ (event.target).closest('[data-handle]'));
      const at = instant(event);
      // Beside the handles, the nearer one comes to the pointer.
      held = handle?.dataset.handle || (Math.abs(at - moment('from')) < Math.abs(at - moment('to')) ? 'from' : 'to');
      chart.setPointerCapture(event.pointerId);
      if (!handle) move(held, at);
      event.preventDefault();
      /** @type {SVGElement | null} */ (chart.querySelector(`[data-handle=${held}]`))?.focus();
    });
    chart.addEventListener('pointermove', (event) => { if (held) move(held, instant(event)); });
    for (const name of ['pointerup', 'pointercancel']) chart.addEventListener(name, () => { held = ''; });
    chart.addEventListener('keydown', (event) => {
      const handle = /** @type {SVGElement | null} */ (/** @type {Element} */ (event.target).closest('[data-handle]'));
      const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1, PageDown: -7, PageUp: 7 });
      const name = handle?.dataset.handle;
      if (!name || !(event.key in steps)) return;
      event.preventDefault();
      move(name, moment(name) + steps[event.key] * 86400000);
    });
  }

  // Request ---------------------------------------------------------------------------------------------------------

  const body = () => {
    // What the browser cannot read, such as half a date, has an empty value.
    for (const field of form.querySelectorAll('input')) {
      if (field.validity.badInput || field.validity.valueMissing) throw new Error(`${field.name}: ${field.validationMessage}`);
    }
    /** @type {Record<string, any>} */
    const request = form.dataset.text ? { text: form.dataset.text } : { skill: form.dataset.skill };
    for (const name of ['from', 'to']) request[name] = `${input(name)?.value}:00Z`;
    for (const name of ['model', 'data_venue', 'speculate', 'equity', 'max_cost_usd', 'price_in', 'price_out', 'max_waste_pct']) {
      const value = input(name)?.value.trim();
      if (value) request[name] = value;
    }
    for (const name of ['repeats', 'seed']) if (input(name)?.value) request[name] = Number(input(name)?.value);
    for (const name of ['blind', 'any_price']) if (input(name)?.checked) request[name] = true;
    const changes = (input('set')?.value || '').split('\n').map((line) => line.trim()).filter(Boolean);
    if (changes.length) request.set = changes;
    /** @type {Record<string, any>} */
    const options = {};
    for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('[name^="options."]'))) {
      const name = field.name.slice('options.'.length);
      if (field.type === 'checkbox' ? field.checked : field.value.trim()) options[name] = field.type === 'checkbox' ? true : field.value.trim();
    }
    if (Object.keys(options).length) request.options = options;
    return request;
  };

  /** @param {number} usd */
  const money = (usd) => `$${usd.toLocaleString('en', usd >= 0.01 || usd === 0 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumSignificantDigits: 2 })}`;
  /** @param {any} cost */
  const costText = (cost) => {
    if (cost.usd === null) return 'The cost is unknown.';
    if (!cost.hi) return 'This costs nothing.';
    return `About ${money(cost.usd)}, from ${money(cost.lo)} to ${money(cost.hi)}.`;
  };
  /** @param {string} id @param {string[]} lines */
  const list = (id, lines) => byId(id).replaceChildren(...lines.map((line) => {
    const item = document.createElement('li');
    item.textContent = line;
    return item;
  }));
  /** Shows an error below the field that it names, else beside the button. @param {any} error */
  const showError = (error) => {
    const problem = error.problem || {};
    const [name] = String(error.message).split(':');
    const place = document.getElementById(`${name}-error`) || byId('start-error');
    place.textContent = problem.hint ? `${error.message} (${problem.hint})` : error.message;
    place.hidden = false;
  };
  const clearErrors = () => {
    for (const place of document.querySelectorAll('.error, #start-error')) {
      place.textContent = '';
      /** @type {HTMLElement} */ (place).hidden = true;
    }
  };

  let asked = 0;
  /** The newest estimate, and the request that it is about. @type {{about: string, cost: any}} */
  let estimated = { about: '', cost: null };
  const estimate = async () => {
    const number = ++asked;
    const place = byId('estimate');
    if (!input('from')) {
      place.textContent = 'The cost is estimated when there is data to run on.';
      return;
    }
    place.setAttribute('aria-busy', 'true');
    try {
      const request = body();
      const cost = await send('POST', '/api/estimate', request);
      if (number !== asked) return;
      estimated = { about: JSON.stringify(request), cost };
      clearErrors();
      const ticks = cost.ticks ? ` ${cost.ticks.toLocaleString('en')} ticks${cost.calls ? `, ${cost.calls.toLocaleString('en')} calls` : ''}.` : '';
      place.textContent = costText(cost) + ticks;
      place.className = cost.needs_confirmation ? 'high' : '';
      list('estimate-basis', cost.basis);
    } catch (error) {
      if (number !== asked) return;
      clearErrors();
      list('estimate-basis', []);
      place.className = '';
      place.textContent = /** @type {any} */ (error).status === 404 ? 'This server gives no estimates.' : 'There is no estimate yet.';
      if (/** @type {any} */ (error).status !== 404) showError(error);
    } finally {
      if (number === asked) place.removeAttribute('aria-busy');
    }
  };
  const estimateSoon = debounce(estimate, 350);

  const dialog = /** @type {HTMLDialogElement} */ (byId('confirm'));
  /** The cost that the dialog asks to confirm. */
  let amount = 0;

  /** Asks for consent to a cost. @param {any} cost */
  const askConsent = (cost) => {
    amount = cost.hi;
    byId('confirm-text').textContent = `This may cost ${money(cost.usd)}, and up to ${money(amount)}. Start it?`;
    byId('confirm-start').textContent = `Spend up to ${money(amount)}`;
    list('confirm-basis', cost.basis || []);
    dialog.showModal();
  };

  /** @param {Record<string, any>} consent */
  const start = async (consent) => {
    const button = /** @type {HTMLButtonElement} */ (byId('start-run'));
    let request;
    try {
      request = body();
    } catch (error) {
      showError(error);
      return;
    }
    const { about, cost } = estimated;
    if (!('confirm_usd' in consent) && about === JSON.stringify(request) && cost.needs_confirmation && cost.hi !== null) {
      askConsent(cost);
      return;
    }
    button.disabled = true;
    clearErrors();
    try {
      const started = await send('POST', '/api/runs', { ...request, ...consent });
      location.assign(`/runs/${encodeURIComponent(started.run_id)}`);
    } catch (error) {
      const { status, problem } = /** @type {any} */ (error);
      button.disabled = false;
      // The server has the last word: its estimate may have changed since it was shown.
      if (status === 409 && problem.estimate && problem.estimate.hi !== null) askConsent(problem.estimate);
      else if (status === 404) complain(new Error('This server cannot start runs.'));
      else showError(error);
    }
  };

  document.addEventListener('click', (event) => {
    const action = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('[data-do]'))?.dataset.do;
    if (action === 'start') start({});
    else if (action === 'confirm') {
      dialog.close();
      start({ confirm_usd: amount });
    } else if (action === 'demo-data') {
      send('POST', '/api/first-steps').then(() => location.reload(), complain);
    }
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', (event) => {
    const name = /** @type {HTMLInputElement} */ (event.target).name;
    if (name === 'skill' || name === 'data_venue') {
      const place = new URLSearchParams({ skill: input('skill')?.value || '' });
      if (name === 'data_venue' && input('data_venue')?.value) place.set('data', input('data_venue')?.value || '');
      location.assign(`/backtest?${place}`);
      return;
    }
    draw();
    estimateSoon();
  });
  draw();
  estimate();
})();
