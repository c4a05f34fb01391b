// The page: a list of models, and for the chosen model the views of what it can do.

import { call, curl, ServerError, useKey } from './api.js';
import { make } from './dom.js';
import { maskOf, VIEWS } from './views.js';

const byId = (id) => document.getElementById(id);
const kept = new Map(); // what was typed, for each model and view
let models = [];
let running = null; // the request that waits for its answer

async function start() {
  try {
    models = (await call('v1/models')).data;
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) askForKey();
    else byId('main').replaceChildren(make('p', { class: 'error', role: 'alert' }, error.message));
    return;
  }
  byId('key-form').hidden = true;
  route();
}

function askForKey() {
  const form = byId('key-form');
  byId('key-error').textContent = form.hidden ? '' : 'The server refuses this key.';
  form.hidden = false;
  byId('key').focus();
}

// -- the address: #/MODEL/VIEW -----------------------------------------------------------------

const addressOf = (model, view) => `#/${encodeURIComponent(model.id)}/${view.id}`;
const viewsOf = (model) => VIEWS.filter((view) => view.fits(model));

function route() {
  running?.abort();
  const [name, id] = location.hash.slice(2).split('/').map(decodeURIComponent);
  const model = models.find((each) => each.id === name) ?? models[0];
  const views = viewsOf(model);
  const view = views.find((each) => each.id === id) ?? views[0];
  showModels(model);
  showView(model, views, view);
}

function showModels(chosen) {
  const items = models.map((model) => make('li', {}, make('a', {
    href: addressOf(model, viewsOf(model)[0]), 'aria-current': model === chosen ? 'page' : null,
  }, make('span', { class: 'name' }, model.id), make('span', { class: 'task' }, model.task))));
  const list = make('ul', {}, items);
  byId('models').replaceChildren(list);
  // on a narrow screen the list is a row that scrolls
  list.scrollLeft = list.querySelector('[aria-current]').offsetLeft - list.offsetLeft;
}

function showView(model, views, view) {
  document.title = `${view.title}: ${model.id}`;
  const tabs = make('nav', { class: 'tabs', 'aria-label': 'Views' }, views.map((each) => make('a', {
    href: addressOf(model, each), 'aria-current': each === view ? 'page' : null,
  }, each.title)));
  const facts = [model.task, model.engine && `runs with ${model.engine}`,
    model.max_length && `up to ${model.max_length} tokens`].filter(Boolean);
  const result = make('div', { class: 'result', id: 'result', 'aria-live': 'polite' });
  byId('main').replaceChildren(
    make('h1', {}, model.id), make('p', { class: 'facts' }, facts.join(' · ')),
    tabs, makeForm(model, view, result), result);
  tabs.scrollLeft = tabs.querySelector('[aria-current]').offsetLeft - tabs.offsetLeft;
}

// -- the form of a view ------------------------------------------------------------------------

function makeForm(model, view, result) {
  const address = addressOf(model, view);
  const values = kept.get(address) ?? Object.fromEntries(view.fields.map(({ name, value }) =>
    [name, typeof value === 'function' ? value(model) : value]));
  kept.set(address, values);
  const problem = make('p', { class: 'error', role: 'alert' });
  const run = make('button', { type: 'submit' }, 'Run');
  const stop = make('button', {
    type: 'button', class: 'quiet', disabled: true, click: () => running?.abort(),
  }, 'Stop');
  const form = make('form', {
    class: 'view',
    submit: (event) => {
      event.preventDefault();
      ask(model, view, { ...values }, { problem, stop, result });
    },
    keydown: (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit(run);
      if (event.key === 'Escape') running?.abort();
    },
  },
    view.fields.filter((field) => field.fits?.(model) ?? true)
      .map((field) => makeField(field, values, model)),
    make('div', { class: 'actions' }, run, stop,
      make('span', { class: 'hint keys' }, 'Ctrl+Enter runs, Esc stops')),
    problem);
  return form;
}

function makeField(field, values, model) {
  const id = `field-${field.name}`;
  const isCheck = field.kind === 'check';
  const control = make(field.kind === 'text' ? 'textarea' : 'input', {
    id, required: !field.optional && !isCheck,
    'aria-describedby': field.help ? `${id}-help` : null,
    ...({
      text: { rows: field.rows ?? 3 },
      line: { type: 'text', autocomplete: 'off' },
      number: { type: 'number', min: field.min, step: field.step },
      check: { type: 'checkbox' },
    })[field.kind],
    input: () => {
      const isNumber = field.kind === 'number';
      values[field.name] = isCheck ? control.checked
        : isNumber ? control.valueAsNumber : control.value;
      refuseBlank();
    },
  });
  if (isCheck) control.checked = values[field.name];
  else control.value = values[field.name];
  const refuseBlank = () => control.setCustomValidity(
    control.required && control.value && !control.value.trim() ? 'Write a text first.' : '');
  refuseBlank();
  return make('div', { class: `field ${field.kind}` },
    make('label', { for: id }, field.label, field.optional ? ' (optional)' : null), control,
    field.mask ? maskButton(control, maskOf(model)) : null,
    field.help ? make('p', { class: 'hint', id: `${id}-help` }, field.help) : null);
}

function maskButton(control, mask) {
  return make('button', {
    type: 'button', class: 'quiet small',
    click: () => {
      control.setRangeText(mask, control.selectionStart, control.selectionEnd, 'end');
      control.dispatchEvent(new Event('input'));
      control.focus();
    },
  }, `Insert ${mask}`);
}

// -- a request ---------------------------------------------------------------------------------

async function ask(model, view, values, { problem, stop, result }) {
  running?.abort();
  const own = new AbortController();
  running = own;
  problem.textContent = '';
  stop.disabled = false;
  result.setAttribute('aria-busy', 'true');
  try {
    const request = view.request?.(values, model);
    const answer = await (view.run ? view.run(values, model, own.signal, result)
      : call(request.path, request.body, own.signal));
    if (running === own) {
      if (view.show) result.replaceChildren(...[view.show(answer, values, model)].flat());
      if (request) result.append(commandOf(request));
    }
  } catch (error) {
    if (error.name !== 'AbortError') problem.textContent = error.message;
  } finally {
    if (running === own) {
      running = null;
      stop.disabled = true;
      result.removeAttribute('aria-busy');
    }
  }
}

function commandOf(request) {
  const line = make('pre', { tabindex: 0 }, curl(request));
  const button = make('button', { type: 'button', class: 'small' }, 'Copy');
  button.addEventListener('click', () => {
    getSelection().selectAllChildren(line); // works without HTTPS, too
    button.textContent = document.execCommand('copy') ? 'Copied' : 'Press Ctrl-C';
  });
  return make('div', { class: 'command' }, make('h3', {}, 'The same in a terminal'), line, button);
}

byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  useKey(byId('key').value);
  start();
});
byId('skip').addEventListener('click', () => byId('main').focus());
window.addEventListener('hashchange', () => models.length && route());
start();
