// The page of the data: imports, downloads with their progress, and the demo market.
// @ts-check
(() => {
  'use strict';
  const { send, toast, complain } = window.pitboss;
  const POLL_MS = 1000;
  const csrf = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name=pitboss-csrf]'));

  /** @param {string} name @returns {HTMLDialogElement} */
  const dialog = (name) => /** @type {HTMLDialogElement} */ (document.getElementById(name));

  // Imports ---------------------------------------------------------------------------------------------------------

  /** @param {HTMLFormElement} form */
  const importFile = async (form) => {
    const values = new FormData(form);
    const file = values.get('file');
    if (!(file instanceof File) || !file.name) return toast('Choose a file first.', 'bad');
    const query = new URLSearchParams({ name: file.name });
    for (const name of ['kind', 'interval', 'symbol', 'venue']) {
      const value = String(values.get(name) || '').trim();
      if (value) query.set(name, value);
    }
    if (values.get('replace')) query.set('replace', 'true');
    const state = /** @type {HTMLElement} */ (document.getElementById('import-state'));
    state.hidden = false;
    state.textContent = `Sending ${file.name}…`;
    try {
      /** @type {Record<string, string>} */
      const headers = { 'Content-Type': 'application/octet-stream' };
      if (csrf) headers['X-CSRF-Token'] = csrf.content;
      const reply = await fetch(`/api/data/import?${query}`, { method: 'POST', headers, body: file });
      const document_ = await reply.json();
      if (!reply.ok) throw Object.assign(new Error(document_.detail), { problem: document_ });
      /** @type {{added: number}[]} */
      const results = document_;
      const added = results.reduce((sum, result) => sum + result.added, 0);
      sessionStorage.setItem('pitboss-toast', `Imported ${file.name}: ${added.toLocaleString('en')} new rows.`);
      location.href = '/data';
    } catch (error) {
      const problem = /** @type {any} */ (error);
      const hint = problem.problem && problem.problem.hint;
      state.textContent = hint ? `${problem.message} (${hint})` : problem.message;
    }
  };

  // Downloads -------------------------------------------------------------------------------------------------------

  /** @param {string} text */
  const words = (text) => text.split(/[\s,]+/).filter(Boolean);

  /** Shows the fields that the chosen source needs. */
  const showNeeds = () => {
    const choice = /** @type {HTMLSelectElement | null} */ (document.getElementById('source'));
    if (!choice) return;
    const needs = (choice.getAttribute(`data-needs-${choice.value}`) || '').split(' ');
    for (const part of document.querySelectorAll('[data-need]')) {
      /** @type {HTMLElement} */ (part).hidden = !needs.includes(part.getAttribute('data-need') || '');
    }
  };

  /** @param {HTMLFormElement} form */
  const startDownload = async (form) => {
    const values = new FormData(form);
    /** @param {string} name */
    const text = (name) => {
      const control = /** @type {HTMLElement | null} */ (form.elements.namedItem(name));
      return control && control.closest('[hidden]') ? '' : String(values.get(name) || '').trim();
    };
    try {
      await send('POST', '/api/data/download', {
        source: text('source'), symbols: words(text('symbols')), intervals: words(text('intervals')),
        from: text('from'), to: text('to'), urls: words(text('urls')),
      });
      dialog('download').close();
      await showDownloads();
    } catch (error) {
      complain(error);
    }
  };

  /** @param {any} download */
  const downloadRow = (download) => {
    const row = document.createElement('div');
    row.className = 'download-row';
    const name = document.createElement('b');
    name.textContent = [download.source, download.symbols.join(', '), download.intervals.join(', ')].filter(Boolean).join(' · ');
    row.append(name);
    if (download.status === 'running') {
      const stop = document.createElement('button');
      stop.type = 'button';
      stop.textContent = 'Cancel';
      stop.addEventListener('click', () => send('POST', `/api/data/downloads/${download.download_id}/cancel`).then(showDownloads, complain));
      const bar = document.createElement('progress');
      bar.max = 100;
      bar.value = download.progress_pct;
      row.append(stop, bar);
    } else {
      const badge = document.createElement('span');
      badge.className = `badge ${download.status === 'complete' ? 'ok' : download.status === 'error' ? 'bad' : 'warn'}`;
      badge.textContent = download.status;
      row.append(badge);
    }
    const state = document.createElement('span');
    state.className = 'state';
    const added = `${download.added_rows.toLocaleString('en')} new rows`;
    const running = [download.label, `${download.progress_pct} %`, added].filter(Boolean).join(', ');
    state.textContent = download.status === 'running' ? running : [download.error_text, download.hint, added].filter(Boolean).join('; ');
    row.append(state);
    return row;
  };

  let wasRunning = false;
  const showDownloads = async () => {
    const list = document.getElementById('downloads');
    const part = document.getElementById('download-list');
    if (!list || !part) return;
    /** @type {any[]} */
    let downloads;
    try {
      downloads = await send('GET', '/api/data/downloads');
    } catch {
      return; // the next look tells
    }
    part.hidden = !downloads.length;
    list.replaceChildren(...downloads.slice(0, 5).map(downloadRow));
    const isRunning = downloads.some((download) => download.status === 'running');
    if (isRunning) setTimeout(showDownloads, POLL_MS);
    else if (wasRunning && downloads[0].status === 'complete' && downloads[0].added_rows) location.reload();
    wasRunning = isRunning;
  };

  // The page --------------------------------------------------------------------------------------------------------

  document.addEventListener('click', async (event) => {
    const target = /** @type {Element} */ (event.target).closest('[data-do]');
    const action = target && target.getAttribute('data-do');
    if (action === 'open-import') dialog('import').showModal();
    else if (action === 'open-download') {
      showNeeds();
      dialog('download').showModal();
    } else if (action === 'demo' && target instanceof HTMLButtonElement) {
      target.disabled = true;
      target.textContent = 'Generating…';
      try {
        await send('POST', '/api/data/demo');
        location.href = '/data';
      } catch (error) {
        target.disabled = false;
        complain(error);
      }
    }
  });
  document.addEventListener('submit', (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (form.id === 'import-form' || form.id === 'download-form') {
      event.preventDefault();
      void (form.id === 'import-form' ? importFile(form) : startDownload(form));
    }
  });
  document.getElementById('source')?.addEventListener('change', showNeeds);

  const waiting = sessionStorage.getItem('pitboss-toast');
  if (waiting) {
    sessionStorage.removeItem('pitboss-toast');
    toast(waiting, 'ok');
  }
  void showDownloads();
})();
