// The page of a deployment: its changing parts stay current, and its buttons send commands.
// @ts-check
(() => {
  'use strict';
  const { send, toast, complain } = window.pitboss;
  const page = /** @type {HTMLElement | null} */ (document.querySelector('.deployment'));
  if (!page) return;
  const { deployment, run, mode } = page.dataset;
  const ASKED = ['flatten', 'stop', 'kill'];
  const PAUSE = 3000;
  const LEAST = 1000; // between two requests, whatever happens
  /** @template {HTMLElement} E @param {string} id @returns {E} */
  const byId = (id) => /** @type {any} */ (document.getElementById(id));
  const state = () => /** @type {HTMLElement | null} */ (page.querySelector('[data-state]'))?.dataset.state || '';

  // What changes ----------------------------------------------------------------------------------------------------

  let isBusy = false;
  let askedAt = 0;
  let shown = '';
  const allow = () => {
    for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (page.querySelectorAll('[data-command]'))) {
      button.disabled = !(button.dataset.states || '').split(' ').includes(state());
    }
  };
  /** Fetches the changing parts; keeps lists that scroll where they are. @param {boolean} [now] */
  const refresh = async (now = false) => {
    if (isBusy || (!now && (document.hidden || Date.now() - askedAt < LEAST || document.getSelection()?.toString()))) return;
    isBusy = true;
    askedAt = Date.now();
    try {
      const reply = await fetch(`/deployments/${deployment}/now`, { headers: { Accept: 'text/html' } });
      const html = reply.ok ? await reply.text() : shown;
      if (html === shown) return;
      shown = html;
      const fresh = document.createElement('template');
      fresh.innerHTML = html; // made by our server, where all text of others is escaped
      for (const part of /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll('[data-part]'))) {
        const next = fresh.content.querySelector(`[data-part="${part.dataset.part}"]`);
        if (!next || next.innerHTML === part.innerHTML) continue;
        const scrolled = [...part.querySelectorAll('.scroll')].map((one) => one.scrollLeft);
        part.replaceChildren(...next.childNodes);
        part.querySelectorAll('.scroll').forEach((one, index) => { one.scrollLeft = scrolled[index] || 0; });
      }
      allow();
    } catch { /* the next time */ } finally {
      isBusy = false;
    }
  };
  setInterval(refresh, PAUSE);
  page.addEventListener('changed', () => refresh(true));
  if (state() !== 'stopped') {
    const source = new EventSource(`/api/runs/${run}/events`);
    source.addEventListener('tick', () => refresh());
    source.addEventListener('done', () => source.close());
    source.addEventListener('error', () => source.close()); // the interval is enough
  }

  // Commands --------------------------------------------------------------------------------------------------------

  const reason = /** @type {HTMLInputElement | null} */ (byId('reason'));
  const form = /** @type {HTMLFormElement | null} */ (byId('command-form'));
  if (!reason || !form) return;
  const drawer = /** @type {HTMLDialogElement} */ (byId('command'));
  const drawerReason = /** @type {HTMLInputElement} */ (byId('command-reason'));
  const confirmation = /** @type {HTMLInputElement} */ (byId('command-confirm'));
  const submit = /** @type {HTMLButtonElement} */ (byId('command-send'));
  const problem = byId('command-problem');
  let chosen = '';

  /** @param {string} command @param {string} why @param {string} [confirm] */
  const tell = async (command, why, confirm = '') => {
    const done = await send('POST', `/api/deployments/${deployment}/commands`, { command, reason: why.trim(), confirm });
    toast(done.acked_at ? `${command}: the deployment is ${done.state}.` : `${command} is stored, and waits for a process.`, done.acked_at ? 'ok' : '');
    reason.value = '';
    await refresh(true);
  };

  /** @param {string} command */
  const ask = (command) => {
    chosen = command;
    const needsName = command === 'resume' && mode === 'live';
    const label = command[0].toUpperCase() + command.slice(1);
    byId('command-title').textContent = `${label} this deployment?`;
    byId('command-meaning').textContent = document.querySelector(`[data-meaning=${command}]`)?.textContent || '';
    byId('command-confirm-field').hidden = !needsName;
    const warning = byId('command-live');
    if (warning) warning.hidden = !needsName;
    confirmation.required = needsName;
    confirmation.value = '';
    drawerReason.required = command === 'resume' && state() === 'halted';
    drawerReason.value = reason.value;
    submit.textContent = label;
    submit.className = command === 'resume' ? 'primary' : 'danger';
    problem.hidden = true;
    drawer.showModal();
    if (drawerReason.required && !drawerReason.value) drawerReason.focus();
    else if (needsName) confirmation.focus();
    else submit.focus();
  };

  page.addEventListener('click', async (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (/** @type {Element} */ (event.target).closest('[data-command]'));
    const command = button?.dataset.command;
    if (!button || !command) return;
    if (ASKED.includes(command) || (command === 'resume' && (mode === 'live' || state() === 'halted'))) return ask(command);
    button.disabled = true;
    try {
      await tell(command, reason.value);
    } catch (error) {
      complain(error);
    } finally {
      allow();
    }
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await tell(chosen, drawerReason.value, confirmation.value.trim());
      drawer.close();
    } catch (error) {
      complain(error, problem);
    } finally {
      submit.disabled = false;
    }
  });
})();
