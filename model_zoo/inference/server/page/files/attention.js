// Where the heads of a layer look: lines between the tokens, layer and head chosen by hand.

import { drawToWidth, make, makeSvg, score } from './dom.js';

const LINE = 24;
const FAINT = 0.03; // weights below aren't drawn

// Of { tokens, heads: numbers of the heads of each layer, attentions: [layer][head][from][to],
// cut: whether the text has more tokens }.
export function attentionView({ tokens, heads, attentions, cut }) {
  const state = { layer: 0, head: 0, token: null };
  const layer = slider('Layer', attentions.length, (value) => choose({ layer: value }));
  const head = slider('Head', heads[0].length, (value) => choose({ head: value }));
  const told = make('p', { class: 'told', 'aria-live': 'polite' });
  const box = make('div', { class: 'attention' });
  let width = 0;
  let isDrawing = false;

  function choose(changed) {
    Object.assign(state, changed);
    const count = heads[state.layer].length;
    head.limit(count);
    state.head = Math.min(state.head, count - 1);
    layer.show(state.layer, String(state.layer + 1));
    head.show(state.head, String(heads[state.layer][state.head] + 1));
    if (width) draw();
  }

  function draw() {
    const hadFocus = box.contains(document.activeElement);
    const weights = attentions[state.layer][state.head];
    box.replaceChildren(drawLines(tokens, weights, state.token, width, select));
    isDrawing = hadFocus; // to get the focus back is no choice
    if (hadFocus) box.querySelector('[tabindex="0"]').focus();
    isDrawing = false;
    told.textContent = tell(tokens, weights, state.token);
  }

  function select(token) {
    if (isDrawing || token === state.token) return;
    state.token = token;
    draw();
  }

  drawToWidth(box, (value) => {
    width = value;
    draw();
  });
  choose({});
  return make('div', {},
    make('div', { class: 'sliders' }, layer.node, head.node),
    told, box,
    cut ? make('p', { class: 'hint' }, `These are the first ${tokens.length} tokens.`) : null);
}

function slider(name, count, onChange) {
  const id = `attention-${name.toLowerCase()}`;
  const input = make('input', {
    id, type: 'range', min: 0, max: count - 1, step: 1, value: 0,
    input: () => onChange(Number(input.value)),
  });
  const output = make('output', { for: id });
  return {
    node: make('div', { class: 'slider' }, make('label', { for: id }, name), input, output),
    limit: (size) => { input.max = size - 1; },
    show: (value, text) => {
      input.value = value;
      input.setAttribute('aria-valuetext', text);
      output.textContent = text;
    },
  };
}

function tell(tokens, weights, chosen) {
  if (chosen === null) {
    return 'Point at a token on the left, or move to it with Tab and the arrow keys.';
  }
  const best = weights[chosen]
    .map((weight, place) => ({ weight, token: tokens[place] }))
    .sort((one, other) => other.weight - one.weight)
    .slice(0, 3)
    .map(({ weight, token }) => `${token} ${score(weight)}`);
  return `${tokens[chosen]} looks at ${best.join(', ')}`;
}

function drawLines(tokens, weights, chosen, width, select) {
  const column = Math.min(150, width * 0.32);
  const inner = Math.min(width, 640);
  const [left, right] = [column, inner - column];
  const y = (place) => LINE * place + LINE / 2;
  const height = LINE * tokens.length;
  const root = makeSvg('svg', {
    viewBox: `0 0 ${inner} ${height}`, width: inner, height, role: 'group',
    'aria-label': 'Tokens and where they look',
    keydown: (event) => move(event, tokens.length, chosen, select),
    mouseleave: () => { if (!root.contains(document.activeElement)) select(null); },
  });
  weights.forEach((row, from) => row.forEach((weight, to) => {
    if (weight < FAINT || (chosen !== null && chosen !== from)) return;
    root.append(makeSvg('line', {
      x1: left + 8, y1: y(from), x2: right - 8, y2: y(to), class: 'look',
      'stroke-opacity': Math.min(1, weight), 'stroke-width': 1 + 2 * weight,
    }));
  }));
  tokens.forEach((token, place) => {
    const isChosen = place === chosen;
    root.append(makeSvg('g', {
      class: isChosen ? 'token chosen' : 'token', role: 'button', 'aria-label': token,
      'aria-pressed': String(isChosen), tabindex: place === (chosen ?? 0) ? 0 : -1,
      focus: () => select(place), mouseenter: () => select(place), click: () => select(place),
    },
      makeSvg('rect', { x: 1, y: LINE * place + 1, width: column, height: LINE - 2, rx: 5 }),
      tokenText(token, left - 4, y(place), 'end')));
    root.append(seenToken(token, chosen === null ? null : weights[chosen][place], {
      x: right, y: y(place), width: column,
    }));
  });
  return root;
}

function seenToken(token, weight, { x, y, width }) {
  const node = makeSvg('g', { class: 'seen' });
  if (weight !== null) {
    node.append(makeSvg('rect', {
      x: x - 4, y: y - LINE / 2 + 1, width, height: LINE - 2, rx: 5, 'fill-opacity': weight * 0.6,
    }));
  }
  node.append(tokenText(token, x + 2, y, 'start'));
  return node;
}

function tokenText(token, x, y, anchor) {
  return makeSvg('text', { x, y: y + 5, 'text-anchor': anchor }, token);
}

function move(event, count, chosen, select) {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const ends = { Home: 0, End: count - 1 };
  const { key } = event;
  if (key in steps) select(Math.max(0, Math.min(count - 1, (chosen ?? 0) + steps[key])));
  else if (key in ends) select(ends[key]);
  else if (key === 'Escape') select(null);
  else return;
  event.preventDefault();
}
