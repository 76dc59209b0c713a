// What can be done with a run on its page: verify, cancel, resume, fork; and parts of the page that are fetched later.
// @ts-check
(() => {
  'use strict';
  const bar = /** @type {HTMLElement | null} */ (document.querySelector('.run-bar'));
  if (!bar) return;
  const { send, complain, toast } = /** @type {any} */ (window).pitboss;
  const run = bar.dataset.run;
  const result = /** @type {HTMLElement} */ (bar.querySelector('.run-result'));

  /** @param {HTMLButtonElement} button @param {() => Promise<void>} work */
  const during = async (button, work) => {
    button.disabled = true;
    try {
      await work();
    } catch (error) {
      complain(error);
    } finally {
      button.disabled = false;
    }
  };
  const actions = /** @type {Record<string, () => Promise<void>>} */ ({
    'verify-run': async () => {
      const found = await send('POST', `/api/runs/${run}/verify`);
      const digest = document.createElement('code');
      digest.textContent = found.digest || bar.dataset.digest || '';
      result.className = `run-result notice ${found.ok ? 'ok' : 'bad'}`;
      result.replaceChildren(found.ok ? 'Verified: every record is chained to the one before and hashes to the digest ' : 'Not as it was written: ', found.ok ? digest : (found.problems || []).join('; '));
      result.hidden = false;
    },
    'cancel-run': async () => {
      await send('POST', `/api/runs/${run}/cancel`);
      toast('The run stops at its next tick; what is done is kept.', 'ok');
    },
    'resume-run': async () => {
      await send('POST', `/api/runs/${run}/resume`);
      location.reload();
    },
  });
  bar.addEventListener('click', (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (/** @type {Element} */ (event.target).closest('button[data-do]'));
    const action = button && actions[button.dataset.do || ''];
    if (button && action) during(button, action);
  });

  // "Ask again with…" in the drawer: a fork, which may need a confirmation of its cost.
  /** @param {HTMLFormElement} form @param {Record<string, unknown>} [agreed] */
  const fork = async (form, agreed = {}) => {
    const value = (/** @type {string} */ name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value;
    const field = value('fork-field');
    const body = /** @type {Record<string, unknown>} */ ({ at: form.dataset.at, ...agreed });
    if (value('fork-model').trim()) body.model = value('fork-model').trim();
    if (field) body.set = [`${field}=${value('fork-value')}`];
    const problem = /** @type {HTMLElement} */ (form.querySelector('.fork-problem'));
    const confirm = /** @type {HTMLButtonElement} */ (form.querySelector('[data-do=confirm-fork]'));
    problem.hidden = true;
    confirm.hidden = true;
    try {
      const reply = await send('POST', `/api/runs/${form.dataset.run}/fork`, body);
      location.assign(`/runs/${reply.run_id}`);
    } catch (error) {
      const { problem: document_ = {}, message } = /** @type {any} */ (error);
      const text = /** @type {HTMLElement} */ (problem.firstElementChild);
      text.textContent = document_.hint && !document_.estimate ? `${message} (${document_.hint})` : message;
      problem.hidden = false;
      if (!document_.estimate) return;
      confirm.hidden = false;
      confirm.onclick = () => fork(form, document_.estimate.hi === null ? { any_price: true } : { confirm_usd: document_.estimate.hi });
    }
  };
  document.addEventListener('submit', (event) => {
    const form = /** @type {HTMLElement} */ (event.target).closest('form.fork-form');
    if (!form) return;
    event.preventDefault();
    const button = /** @type {HTMLButtonElement} */ (form.querySelector('[type=submit]'));
    during(button, () => fork(/** @type {HTMLFormElement} */ (form)));
  });
  document.addEventListener('change', (event) => {
    const choice = /** @type {HTMLSelectElement} */ (event.target);
    const form = choice.id === 'fork-field' && /** @type {HTMLFormElement | null} */ (choice.closest('form.fork-form'));
    if (!form) return;
    const area = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('fork-value'));
    area.disabled = !choice.value;
    area.value = JSON.parse(form.dataset.fields || '{}')[choice.value] || '';
    if (choice.value) area.focus();
  });

  const waiting = /** @type {HTMLElement | null} */ (document.querySelector('[data-wait]'));
  const ask = async () => {
    try {
      if ((await send('GET', String(waiting?.dataset.wait))).ready) { location.reload(); return; }
    } catch (error) {
      complain(error);
      const { status } = /** @type {any} */ (error);
      if (status >= 400 && status < 500 && status !== 429) return; // the next answer would be the same
    }
    setTimeout(ask, 1500);
  };
  if (waiting) ask();

  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-fetch]'))) {
    fetch(String(place.dataset.fetch), { headers: { Accept: 'text/html' } })
      .then(async (reply) => {
        if (!reply.ok) throw new Error(`this part could not be loaded (${reply.status})`);
        place.innerHTML = await reply.text(); // markup of this server
      })
      .catch(complain);
  }
})();
