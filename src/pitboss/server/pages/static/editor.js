// The editor of skills: the form and the text say the same at all times, and the pane beside them shows what the agent sees.
// @ts-check
(() => {
  'use strict';
  /** @typedef {{path: string, message: string, hint: string, line: number | null}} Problem */
  /** @typedef {{ok: boolean, digest: string | null, errors: Problem[], notes: string[], venue: string | null,
   *   plain: Record<string, any> | null, written: Record<string, any> | null, text?: string}} Check */
  const { send, toast, complain, debounce } = window.pitboss;
  /** @template {Element} E @param {string} id @returns {E} */
  const byId = (id) => /** @type {any} */ (document.getElementById(id));
  const editor = /** @type {HTMLElement} */ (document.querySelector('.editor'));
  const area = /** @type {HTMLTextAreaElement} */ (byId('skill-text'));
  const gutter = /** @type {HTMLElement} */ (byId('gutter'));
  let form = /** @type {HTMLFormElement} */ (byId('skill-form'));
  let saved = editor.dataset.saved ? area.value : '';
  /** @type {Check | null} */
  let latest = null;
  /** The text that `latest` is about. */
  let checkedText = '';
  /** Changes of the form and checks of the text go to the server one after another. @type {Promise<unknown>} */
  let queue = Promise.resolve();
  let waiting = 0;

  // Text ------------------------------------------------------------------------------------------------------------

  /** Puts a new text in place of the old one and keeps the cursor where it is. @param {string} text */
  const replaceText = (text) => {
    const old = area.value;
    if (text === old) return;
    let start = 0;
    while (start < old.length && start < text.length && old[start] === text[start]) start++;
    let end = 0;
    while (end < old.length - start && end < text.length - start && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
    area.setRangeText(text.slice(start, text.length - end), start, old.length - end, 'preserve');
    numberLines();
    const first = text.slice(0, start).split('\n').length;
    const last = first + text.slice(start, text.length - end).split('\n').length - 1;
    for (const line of gutter.querySelectorAll('.changed')) line.classList.remove('changed');
    for (let line = first; line <= last; line++) gutter.children[line - 1]?.classList.add('changed');
    const height = area.scrollHeight / Math.max(1, gutter.children.length);
    if ((first - 1) * height < area.scrollTop || last * height > area.scrollTop + area.clientHeight) area.scrollTop = Math.max(0, (first - 5) * height);
  };

  const numberLines = () => {
    const count = area.value.split('\n').length;
    while (gutter.children.length < count) gutter.append(document.createElement('li'));
    while (gutter.children.length > count) /** @type {Element} */ (gutter.lastElementChild).remove();
    gutter.scrollTop = area.scrollTop;
  };

  /** @param {number} line */
  const goToLine = (line) => {
    show('text');
    const lines = area.value.split('\n');
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1] || '').length);
    area.scrollTop = Math.max(0, (line - 4) * (area.scrollHeight / lines.length));
  };

  // Form ------------------------------------------------------------------------------------------------------------

  /** @param {any} document_ @param {string} path */
  const valueAt = (document_, path) => path.split('.').reduce((part, name) => (part && typeof part === 'object' ? part[name] : undefined), document_);
  /** @returns {HTMLElement[]} */
  const controls = () => Array.from(form.querySelectorAll('[data-path]'));
  /** @param {HTMLElement} group */
  const boxes = (group) => /** @type {HTMLInputElement[]} */ (Array.from(group.querySelectorAll('input[type=checkbox]')));
  /** Splits a list at line ends and commas, but not within brackets. @param {string} text */
  const names = (text) => text.split(/\n|,(?![^()]*\))/).map((name) => name.trim()).filter(Boolean);

  /** A plain value as YAML in one line. @param {any} value @returns {string} */
  const oneLine = (value) => {
    if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
    if (value && typeof value === 'object') return `{${Object.entries(value).map(([key, item]) => `${key}: ${oneLine(item)}`).join(', ')}}`;
    return typeof value === 'string' && /^[\w./-]+$/.test(value) ? value : JSON.stringify(value);
  };

  /** Shows the value that the text has for a control. @param {HTMLElement} control @param {any} value */
  const fill = (control, value) => {
    const kind = control.dataset.kind;
    if (kind === 'choices' || kind === 'tools') {
      const fallback = control.dataset.default ? JSON.parse(control.dataset.default) : [];
      const chosen = Array.isArray(value) ? value : value === undefined ? fallback : [];
      for (const box of boxes(control)) box.checked = chosen.includes(box.value);
      return;
    }
    if (kind === 'servers') {
      /** @type {Map<string, string[]>} */
      const chosen = new Map((Array.isArray(value) ? value : []).filter((entry) => entry && entry.id).map((entry) => [entry.id, entry.tool_filter || []]));
      for (const box of boxes(control)) {
        const filter = chosen.get(box.dataset.server || box.dataset.serverTool || '');
        box.checked = box.dataset.server ? filter !== undefined : filter !== undefined && (filter.length === 0 || filter.includes(box.value));
      }
      return;
    }
    const input = /** @type {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} */ (control);
    let text = '';
    if (value === undefined || value === null) text = '';
    else if (kind === 'names') text = Array.isArray(value) ? value.join(value.some((name) => String(name).includes(',')) ? '\n' : ', ') : oneLine(value);
    else if (kind === 'yaml') text = oneLine(value);
    else if (kind === 'prose') text = String(value).replace(/\n+$/, '');
    else text = typeof value === 'object' ? oneLine(value) : String(value);
    if (input instanceof HTMLSelectElement && text && !Array.from(input.options).some((option) => option.value === text)) {
      input.add(new Option(text, text)); // an invalid value is shown as it is, with its error
    }
    if (input.value !== text) input.value = text;
    if (input instanceof HTMLTextAreaElement) grow(input);
  };

  /** Makes a text field as tall as its text. @param {HTMLTextAreaElement} input */
  const grow = (input) => {
    const least = input.dataset.kind === 'names' ? 1 : input.dataset.kind === 'yaml' ? 2 : input.id === 'description' ? 2 : 4;
    const lines = input.value.split('\n').reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 76)), 0);
    input.rows = Math.min(24, Math.max(least, lines));
  };

  /** The change that a control asks for: `value` as JSON (null removes the field), or `value_text` as it was typed. @param {HTMLElement} control */
  const changeOf = (control) => {
    const kind = control.dataset.kind;
    if (kind === 'choices' || kind === 'tools') return { value: boxes(control).filter((box) => box.checked).map((box) => box.value) };
    if (kind === 'servers') {
      const servers = boxes(control).filter((box) => box.dataset.server && box.checked).map((server) => {
        const tools = boxes(control).filter((box) => box.dataset.serverTool === server.value);
        const chosen = tools.filter((box) => box.checked).map((box) => box.value);
        return chosen.length === 0 || chosen.length === tools.length ? { id: server.value } : { id: server.value, tool_filter: chosen };
      });
      return { value: servers.length ? servers : null };
    }
    const text = /** @type {HTMLInputElement} */ (control).value;
    if (!text.trim()) return { value: null };
    if (kind === 'names') return { value: names(text) };
    if (kind === 'prose') return { value: text.includes('\n') ? `${text.replace(/\s+$/, '')}\n` : text };
    if (kind === 'flag') return { value: text === 'true' };
    return { value_text: text };
  };

  const fillForm = () => {
    if (!latest || !latest.written) return;
    for (const control of controls()) {
      const path = /** @type {string} */ (control.dataset.path);
      const value = valueAt(latest.written, path);
      const reset = form.querySelector(`[data-reset="${path}"]`);
      if (reset) /** @type {HTMLElement} */ (reset).hidden = value === undefined || control.getAttribute('aria-required') === 'true';
      if (control !== document.activeElement && !control.contains(document.activeElement)) fill(control, value);
      else if (control.dataset.kind === 'servers' || control.dataset.kind === 'tools') fill(control, value);
    }
  };

  // Problems --------------------------------------------------------------------------------------------------------

  /** The field that a path leads to: without positions, in the spelling of the schema, or a section above it. @param {string} path */
  const fieldOf = (path) => {
    let name = path.replace(/\[.*$/, '').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    while (name) {
      const place = form.querySelector(`[data-field="${CSS.escape(name)}"]`);
      if (place) return place;
      name = name.includes('.') ? name.replace(/\.[^.]*$/, '') : '';
    }
    return null;
  };

  const showProblems = () => {
    if (!latest) return;
    for (const place of form.querySelectorAll('.error')) {
      place.textContent = '';
      /** @type {HTMLElement} */ (place).hidden = true;
    }
    for (const control of controls()) control.removeAttribute('aria-invalid');
    for (const count of form.querySelectorAll('summary .count')) /** @type {HTMLElement} */ (count).hidden = true;
    for (const line of gutter.querySelectorAll('.bad')) line.classList.remove('bad');
    const list = /** @type {HTMLElement} */ (byId('text-errors'));
    list.replaceChildren();
    for (const problem of latest.errors) {
      const place = problem.path ? fieldOf(problem.path) : null;
      const sentence = problem.hint ? `${problem.message} (${problem.hint})` : problem.message;
      if (place) {
        const isHelp = problem.hint === place.querySelector('.hint')?.textContent; // it stands below the field already
        const text = /** @type {HTMLElement} */ (place.querySelector('.error'));
        const below = isHelp ? problem.message : sentence;
        text.textContent = text.textContent ? `${text.textContent}; ${below}` : below;
        text.hidden = false;
        place.querySelector('[data-path]')?.setAttribute('aria-invalid', 'true');
        const count = /** @type {HTMLElement | null | undefined} */ (place.closest('details')?.querySelector('summary .count'));
        if (count) {
          const number = (count.hidden ? 0 : Number(count.dataset.number || 0)) + 1;
          count.dataset.number = String(number);
          count.textContent = number === 1 ? '1 problem' : `${number} problems`;
          count.hidden = false;
        }
      }
      const line = problem.line || Number((/^line (\d+)/.exec(problem.message) || [])[1] || 0);
      if (line && gutter.children[line - 1]) gutter.children[line - 1].classList.add('bad');
      const item = document.createElement('li');
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'quiet';
      button.textContent = `${line ? `Line ${line}: ` : ''}${problem.path ? `${problem.path}: ` : ''}${sentence}`;
      button.addEventListener('click', () => (line ? goToLine(line) : undefined));
      item.append(button);
      list.append(item);
    }
    for (const note of latest.notes) {
      const item = document.createElement('li');
      item.className = 'remark';
      item.textContent = note;
      list.append(item);
    }
    const state = /** @type {HTMLElement} */ (byId('check-state'));
    const count = latest.errors.length;
    state.textContent = latest.ok ? 'valid' : count === 1 ? '1 problem' : `${count} problems`;
    state.className = `badge ${latest.ok ? 'ok' : 'bad'}`;
    const unreadable = latest.written === null;
    form.classList.toggle('unreadable', unreadable);
    for (const control of form.querySelectorAll('input, select, textarea, button')) /** @type {HTMLInputElement} */ (control).disabled = unreadable;
  };

  const showState = () => {
    const changed = area.value !== saved;
    const state = /** @type {HTMLElement} */ (byId('saved-state'));
    const version = editor.dataset.version;
    if (changed) state.textContent = editor.dataset.name ? 'unsaved changes' : 'not saved yet';
    else if (version) state.textContent = `version ${version}`;
    state.className = `badge ${changed ? 'warn' : ''}`;
    /** @type {HTMLButtonElement} */ (byId('save')).disabled = !changed || !latest || !latest.ok;
  };

  /** @param {Check} check @param {string} text */
  const accept = async (check, text) => {
    latest = check;
    checkedText = text;
    if (check.venue && check.venue !== form.dataset.venue && check.written) await changeVenue(check.venue);
    fillForm();
    showProblems();
    showState();
    preview();
  };

  /** The form of another venue, after the text has named it. @param {string} venue */
  const changeVenue = async (venue) => {
    const reply = await fetch(`/skills/form?venue=${encodeURIComponent(venue)}`);
    if (!reply.ok) return;
    /** @type {HTMLElement} */ (byId('pane-form')).innerHTML = await reply.text(); // markup of our own server
    form = /** @type {HTMLFormElement} */ (byId('skill-form'));
    /** @type {HTMLElement} */ (byId('skill-venue')).textContent = venue;
  };

  // Requests --------------------------------------------------------------------------------------------------------

  /** @param {() => Promise<void>} work */
  const inTurn = (work) => {
    waiting += 1;
    editor.setAttribute('aria-busy', 'true');
    queue = queue.then(work).catch(complain).finally(() => {
      waiting -= 1;
      if (!waiting) editor.removeAttribute('aria-busy');
    });
    return queue;
  };

  const checkText = () => inTurn(async () => {
    const text = area.value;
    await accept(await send('POST', '/api/skills/check', { text }), text);
  });
  const checkSoon = debounce(checkText, 250);

  /** @param {string} path @param {Record<string, unknown>} change */
  const edit = (path, change) => inTurn(async () => {
    const text = area.value;
    try {
      /** @type {Check} */
      const check = await send('POST', '/api/skills/edit', { text, path, ...change });
      if (area.value !== text) return; // typed meanwhile: the check of that text follows
      replaceText(check.text || '');
      await accept(check, area.value);
    } catch (error) {
      const place = fieldOf(path);
      const message = /** @type {any} */ (error).message;
      const text_ = /** @type {HTMLElement | null | undefined} */ (place && place.querySelector('.error'));
      if (!text_) throw error;
      text_.textContent = message;
      text_.hidden = false;
    }
  });

  /** One timer for each field, so that a change of another field does not drop the first. @type {Map<string, number>} */
  const timers = new Map();
  /** @param {HTMLElement} control @param {number} pause */
  const editSoon = (control, pause) => {
    const path = /** @type {string} */ (control.dataset.path);
    clearTimeout(timers.get(path));
    editor.setAttribute('aria-busy', 'true');
    waiting += timers.has(path) ? 0 : 1;
    timers.set(path, setTimeout(() => {
      timers.delete(path);
      waiting -= 1;
      edit(path, changeOf(control));
    }, pause));
  };

  const save = () => inTurn(async () => {
    const text = area.value;
    if (!latest || !latest.ok || !latest.plain) {
      toast('The skill has problems: it is saved when they are fixed.', 'bad');
      return;
    }
    const name = latest.plain.name;
    const stored = await send('PUT', `/api/skills/${encodeURIComponent(name)}`, { text });
    saved = text;
    editor.dataset.name = name;
    editor.dataset.version = stored.version;
    /** @type {HTMLElement} */ (byId('skill-title')).textContent = name;
    history.replaceState(null, '', `/skills/${encodeURIComponent(name)}/edit`);
    for (const link of document.querySelectorAll('a[href^="/backtest?skill="]')) link.setAttribute('href', `/backtest?skill=${encodeURIComponent(name)}`);
    showState();
    toast(stored.is_new ? `Saved as version ${stored.version} of ${name}.` : `The content is that of version ${stored.version}.`, 'ok');
  });

  // What the agent sees ---------------------------------------------------------------------------------------------

  const at = /** @type {HTMLInputElement} */ (byId('preview-at'));
  const LENGTHS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };
  /** The time between ticks of the document. */
  const period = () => {
    const plain = (latest && latest.plain) || {};
    const match = /^\s*(\d+(?:\.\d+)?)(ms|s|m|h|d)\s*$/.exec((plain.schedule && plain.schedule.every) || plain.every || '');
    return match ? Number(match[1]) * /** @type {any} */ (LENGTHS)[match[2]] : 3600000;
  };
  let shownAt = '';
  let asked = 0;

  const loadPreview = async () => {
    if (!latest || !latest.ok || area.value !== checkedText) return; // the next check asks for it again
    const pane = /** @type {HTMLElement} */ (byId('preview'));
    const problem = /** @type {HTMLElement} */ (byId('preview-problem'));
    const number = ++asked;
    pane.setAttribute('aria-busy', 'true');
    const body = {
      text: area.value,
      at: at.value.trim(),
      data_venue: /** @type {HTMLSelectElement} */ (byId('preview-venue')).value,
      model: /** @type {HTMLInputElement} */ (byId('preview-model')).value.trim(),
    };
    try {
      const prompt = await send('POST', '/api/skills/preview', body);
      if (number !== asked) return;
      problem.hidden = true;
      shownAt = prompt.at;
      showPrompt(prompt);
    } catch (error) {
      if (number !== asked) return;
      const cause = /** @type {any} */ (error);
      const hint = cause.problem && cause.problem.hint;
      problem.textContent = hint ? `${cause.message} (${hint})` : cause.message;
      problem.hidden = false;
    } finally {
      if (number === asked) pane.setAttribute('aria-busy', 'false');
    }
  };

  /** @param {any} prompt */
  const showPrompt = (prompt) => {
    /** @type {HTMLElement} */ (byId('preview-result')).hidden = false;
    /** @type {HTMLElement} */ (byId('preview-system')).textContent = prompt.system;
    /** @type {HTMLElement} */ (byId('preview-user')).textContent = prompt.user;
    const cost = prompt.cost_per_tick;
    const ticks = Math.round(86400000 / period());
    /** @type {[string, string][]} */
    const facts = [
      ['Tick', prompt.at.replace('T', ' ').replace('Z', '')],
      ['Tokens', `about ${prompt.tokens_estimate.toLocaleString('en')}`],
      ['Cost per tick', cost.usd === null ? 'unknown' : cost.usd === 0 ? 'nothing' : `$${money(cost.usd)} ($${money(cost.lo)} to $${money(cost.hi)})`],
      ['Cost per day', cost.usd ? `$${money(cost.usd * ticks)} at ${ticks} ticks` : cost.usd === 0 ? 'nothing' : 'unknown'],
      ['Model', cost.model],
    ];
    /** @type {HTMLElement} */ (byId('preview-facts')).replaceChildren(...facts.map(([name, value]) => {
      const pair = document.createElement('div');
      const term = document.createElement('dt');
      const fact = document.createElement('dd');
      term.textContent = name;
      fact.textContent = value;
      if (name.startsWith('Cost')) fact.title = cost.basis;
      pair.append(term, fact);
      return pair;
    }));
    /** @type {HTMLElement} */ (byId('preview-tools')).replaceChildren(...prompt.tools.map((/** @type {any} */ tool) => {
      const details = document.createElement('details');
      const summary = document.createElement('summary');
      const name = document.createElement('b');
      const schema = document.createElement('pre');
      name.textContent = tool.name;
      summary.append(name, ` ${tool.description}`);
      schema.textContent = JSON.stringify(tool.input_schema, null, 2);
      details.append(summary, schema);
      return details;
    }));
  };

  /** @param {number} usd */
  const money = (usd) => usd.toLocaleString('en', usd >= 1 ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 2 });

  const previewSoon = debounce(loadPreview, 400);
  const preview = () => {
    if (latest && latest.ok) previewSoon();
    else {
      const problem = /** @type {HTMLElement} */ (byId('preview-problem'));
      problem.textContent = 'The preview follows when the skill is valid.';
      problem.hidden = false;
    }
  };

  /** @param {number} step */
  const moveTick = (step) => {
    const from = Date.parse(at.value.trim() || shownAt);
    if (Number.isNaN(from)) return;
    at.value = new Date(from + step * period()).toISOString().replace('.000', '');
    loadPreview();
  };

  // Panes -----------------------------------------------------------------------------------------------------------

  /** @param {string} pane */
  const show = (pane) => {
    editor.dataset.pane = pane;
    for (const tab of editor.querySelectorAll('[role=tab]')) {
      tab.setAttribute('aria-selected', String(/** @type {HTMLElement} */ (tab).dataset.pane === pane));
    }
    numberLines();
  };

  editor.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target);
    const tab = /** @type {HTMLElement | null} */ (target.closest('[role=tab]'));
    const reset = /** @type {HTMLElement | null} */ (target.closest('[data-reset]'));
    const action = /** @type {HTMLElement | null} */ (target.closest('[data-do]'));
    if (tab && tab.dataset.pane) show(tab.dataset.pane);
    else if (reset && reset.dataset.reset) {
      const path = reset.dataset.reset;
      reset.blur();
      edit(path, { value: null });
    } else if (action && action.dataset.do === 'earlier') moveTick(-1);
    else if (action && action.dataset.do === 'later') moveTick(1);
    else if (action && action.dataset.do === 'newest') {
      at.value = '';
      loadPreview();
    } else if (action && action.dataset.do === 'copy') {
      const text = /** @type {HTMLElement} */ (byId(action.dataset.target || '')).textContent || '';
      navigator.clipboard.writeText(text).then(() => toast('Copied.'), complain);
    }
  });

  editor.addEventListener('keydown', (event) => {
    const tab = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('[role=tab]'));
    if (!tab || !['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
    const tabs = /** @type {HTMLElement[]} */ (Array.from(editor.querySelectorAll('[role=tab]'))).filter((other) => other.offsetParent);
    const next = tabs[(tabs.indexOf(tab) + (event.key === 'ArrowRight' ? 1 : tabs.length - 1)) % tabs.length];
    next.focus();
    show(next.dataset.pane || 'form');
  });

  editor.addEventListener('input', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target === area) {
      numberLines();
      showState();
      checkSoon();
      return;
    }
    if (target.closest('.preview-controls')) {
      previewSoon();
      return;
    }
    const control = /** @type {HTMLElement | null} */ (target.closest('[data-path]'));
    if (!control) return;
    if (control.dataset.kind === 'servers') chooseServerTools(control, /** @type {HTMLInputElement} */ (target));
    if (target instanceof HTMLTextAreaElement) grow(target);
    const typed = target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === 'text');
    editSoon(control, typed ? 300 : 0);
  });

  /** A server that is chosen has all its tools; one without tools is not chosen. @param {HTMLElement} group @param {HTMLInputElement} box */
  const chooseServerTools = (group, box) => {
    const server = box.dataset.server || box.dataset.serverTool || '';
    const tools = boxes(group).filter((other) => other.dataset.serverTool === server);
    if (box.dataset.server) for (const tool of tools) tool.checked = box.checked;
    else for (const other of boxes(group)) if (other.dataset.server === server) other.checked = tools.some((tool) => tool.checked);
  };

  area.addEventListener('scroll', () => { gutter.scrollTop = area.scrollTop; });
  area.addEventListener('keydown', (event) => {
    if (event.key !== 'Tab' || event.shiftKey || event.ctrlKey || event.altKey || area.dataset.leave) {
      if (event.key !== 'Escape') delete area.dataset.leave;
      else area.dataset.leave = 'true'; // Escape, then Tab, leaves the field with the keyboard
      return;
    }
    event.preventDefault();
    area.setRangeText('  ', area.selectionStart, area.selectionEnd, 'end');
    area.dispatchEvent(new Event('input', { bubbles: true }));
  });
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 's') {
      event.preventDefault();
      const active = /** @type {HTMLElement | null} */ (document.activeElement);
      const control = /** @type {HTMLElement | null | undefined} */ (active && active.closest('[data-path]'));
      if (control && timers.has(control.dataset.path || '')) {
        const path = control.dataset.path || '';
        clearTimeout(timers.get(path));
        timers.delete(path);
        waiting -= 1;
        edit(path, changeOf(control));
      } else if (active === area) checkText();
      save();
    }
  });
  /** @type {HTMLElement} */ (byId('save')).addEventListener('click', save);
  window.addEventListener('beforeunload', (event) => {
    if (area.value !== saved && (editor.dataset.name || editor.dataset.touched)) event.preventDefault();
  });
  editor.addEventListener('input', () => { editor.dataset.touched = 'true'; });

  editor.dataset.version = (/version (\d+)/.exec(/** @type {HTMLElement} */ (byId('saved-state')).textContent || '') || [])[1] || '';
  show(window.matchMedia('(min-width: 1000px)').matches ? 'text' : 'form');
  numberLines();
  checkText();
})();
