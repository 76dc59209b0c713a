// The form of a new study: fields to vary or models to compare, the estimate while they are typed, and the confirmation of the cost.
// @ts-check
(() => {
  'use strict';
  const { send, complain, debounce } = window.pitboss;
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById('study-form'));
  if (!form) return;
  const drawer = /** @type {HTMLDialogElement} */ (document.getElementById('study'));
  const confirmation = /** @type {HTMLDialogElement} */ (document.getElementById('confirm'));
  const estimate = /** @type {HTMLElement} */ (document.getElementById('study-estimate'));
  /** @type {'sweep' | 'arena'} */
  let kind = 'sweep';
  let confirmUsd = 0;
  let anyPrice = false;

  /** @param {string} label @param {string} list @param {string} name @param {string} placeholder */
  const input = (label, list, name, placeholder) => {
    const control = document.createElement('input');
    control.type = 'text';
    control.autocomplete = 'off';
    control.setAttribute('aria-label', label);
    if (list) control.setAttribute('list', list);
    control.dataset.part = name;
    control.placeholder = placeholder;
    return control;
  };

  /** @param {string} place @param {HTMLInputElement[]} controls */
  const addRow = (place, controls) => {
    const row = document.createElement('div');
    row.className = controls.length === 1 ? 'axis one' : 'axis';
    const remove = document.createElement('button');
    remove.type = 'button';
    remove.textContent = '×';
    remove.setAttribute('aria-label', 'Remove');
    remove.addEventListener('click', () => {
      row.remove();
      look();
    });
    row.append(...controls, remove);
    document.getElementById(place)?.append(row);
  };
  const addAxis = () => addRow('axes', [input('Field', 'paths', 'field', 'risk.max_leverage'), input('Values', '', 'values', '1, 2, 5')]);
  const addModel = () => addRow('entrants', [input('Model', 'models', 'model', 'provider/model')]);

  /** @param {string} part @returns {string[]} */
  const parts = (part) => [...form.querySelectorAll(`[data-part=${part}]`)].map((control) => /** @type {HTMLInputElement} */ (control).value.trim());

  /** The body of the request; null while something is missing. */
  const body = () => {
    const values = new FormData(form);
    /** @param {string} name */
    const text = (name) => String(values.get(name) || '').trim();
    const skill = text('skill');
    if (!skill || !text('from') || !text('to')) return null;
    const shared = {
      kind, skill, from: text('from'), to: text('to'), data_venue: text('data_venue'), name: text('name'), repeats: Number(text('repeats')) || 1,
    };
    if (kind === 'arena') {
      const models = parts('model').filter(Boolean);
      return models.length ? { ...shared, models } : null;
    }
    const fields = parts('field');
    const vary = parts('values').map((value, index) => [fields[index], value]).filter(([field, value]) => field && value);
    if (!vary.length) return null;
    const axes = vary.map(([field, value]) => `${field}=${value.replace(/\s+/g, '')}`);
    const random = Number(text('random'));
    const search = Number(text('search'));
    const walk = text('walk_forward');
    return { ...shared, model: text('model'), vary: axes, ...(random ? { random } : {}), ...(search ? { search } : {}), ...(walk ? { walk_forward: walk } : {}) };
  };

  /** @param {any} cost */
  const costText = (cost) => {
    if (cost.usd === null) return 'The price of a model is unknown, so the cost cannot be estimated.';
    if (!cost.hi) return 'It costs nothing.';
    return `It may cost $${cost.usd.toFixed(2)} (from $${cost.lo.toFixed(2)} to $${cost.hi.toFixed(2)}).`;
  };

  let asked = 0;
  const look = debounce(async () => {
    const number = ++asked;
    const request = body();
    estimate.hidden = !request;
    if (!request) return;
    try {
      const found = await send('POST', '/api/studies/estimate', request);
      if (number !== asked) return;
      const done = found.total_runs - found.runs;
      estimate.className = 'wide notice ok';
      estimate.textContent = `${found.total_runs} runs${done > 0 ? `, ${done} of them complete already` : ''}. ${costText(found)}`;
    } catch (error) {
      if (number !== asked) return;
      const problem = /** @type {any} */ (error);
      estimate.className = 'wide notice bad';
      estimate.textContent = problem.problem && problem.problem.hint ? `${problem.message} (${problem.problem.hint})` : problem.message;
    }
  }, 400);

  const start = async () => {
    const request = body();
    if (!request) {
      estimate.className = 'wide notice bad';
      complain(new Error(kind === 'arena' ? 'Name a model first.' : 'Name a field and its values first.'), estimate);
      return;
    }
    try {
      const created = await send('POST', '/api/studies', { ...request, ...(confirmUsd ? { confirm_usd: confirmUsd } : {}), any_price: anyPrice });
      location.href = `/studies/${created.study_id}`;
    } catch (error) {
      const problem = /** @type {any} */ (error);
      const cost = problem.status === 409 && problem.problem.estimate;
      if (!cost) return complain(error);
      confirmUsd = cost.hi || 0;
      anyPrice = cost.usd === null;
      const basis = /** @type {HTMLElement} */ (document.getElementById('confirm-basis'));
      /** @type {HTMLElement} */ (document.getElementById('confirm-text')).textContent = costText(cost);
      basis.replaceChildren(...cost.basis.map((/** @type {string} */ line) => Object.assign(document.createElement('li'), { textContent: line })));
      confirmation.showModal();
    }
  };

  /** @param {'sweep' | 'arena'} chosen */
  const open = (chosen) => {
    kind = chosen;
    [confirmUsd, anyPrice] = [0, false];
    for (const part of form.querySelectorAll('[data-kind]')) /** @type {HTMLElement} */ (part).hidden = part.getAttribute('data-kind') !== kind;
    const repeats = /** @type {HTMLInputElement} */ (form.elements.namedItem('repeats'));
    repeats.value = kind === 'arena' ? '3' : '1';
    const title = document.getElementById('study-title');
    if (title) title.textContent = kind === 'arena' ? 'New arena' : 'New sweep';
    if (!document.querySelector('#axes > *')) [addAxis, addAxis].forEach((add) => add());
    if (!document.querySelector('#entrants > *')) [addModel, addModel].forEach((add) => add());
    drawer.showModal();
    look();
  };

  document.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target).closest('[data-do]');
    const action = target && target.getAttribute('data-do');
    if (action === 'new-sweep') open('sweep');
    else if (action === 'new-arena') open('arena');
    else if (action === 'add-axis') addAxis();
    else if (action === 'add-model') addModel();
    else if (action === 'confirm-study') {
      confirmation.close();
      void start();
    }
  });
  form.addEventListener('input', look);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    [confirmUsd, anyPrice] = [0, false];
    void start();
  });
})();
