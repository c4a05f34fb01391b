// What a model can be tried with: for each task its fields, its request and its result.

import { attentionView } from './attention.js';
import { call, modelPath, stream } from './api.js';
import { bars, colourOf, heatMap, legend, markedText, neighbourMap, numbers } from './draw.js';
import { make, score } from './dom.js';

const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean);
const does = (task) => (model) => model.tasks.includes(task);
const NEAREST = 3;
// A value of the example in the model's card, or a usual one.
const own = (name, usual) => (model) => model.example[name] ?? usual;

const SENTENCES = [
  'A cat sleeps on the sofa.', 'A kitten is dozing.', 'The dog chases a ball.',
  'The bank raised its interest rates.', 'Inflation worries investors.',
  'Shares fell on Monday.', 'It rains all day.', 'The sun comes out after the storm.',
].join('\n');
const SECOND = {
  name: 'pair', label: 'Second text', kind: 'text', optional: true, value: own('text_pair', ''),
  fits: (model) => model.text_pairs,
};

function infer(task, makeBody) {
  return (values, model) => ({ path: modelPath(model, task), body: makeBody(values, model) });
}

const embed = ({ texts, query }, model) => ({
  path: 'v1/embeddings',
  body: { model: model.id, input: [...lines(texts), ...(query ? [query] : [])] },
});
const complete = ({ prompt, tokens, temperature }, model) => ({
  path: 'v1/completions', body: { model: model.id, prompt, max_tokens: tokens, temperature },
});

export const VIEWS = [
  {
    id: 'text-classification', title: 'Labels', fits: does('text-classification'),
    fields: [
      { name: 'text', label: 'Text', kind: 'text', value: own('text', 'The food was great.') },
      SECOND,
    ],
    request: infer('text-classification', ({ text, pair }) =>
      ({ inputs: [pair ? { text, text_pair: pair } : text] })),
    show: ([labels], values, model) => (model.is_regression ? numbers : bars)(labels, 'Labels'),
  },
  {
    id: 'zero-shot-classification', title: 'Your own labels',
    fits: (model) => does('zero-shot-classification')(model)
      && (model.labels ?? ['entail']).some((label) => label.toLowerCase().startsWith('entail')),
    fields: [
      { name: 'text', label: 'Text', kind: 'text', value: 'The match ended in a draw.' },
      { name: 'labels', label: 'Labels, separated by commas', kind: 'line',
        value: 'sport, politics, cooking' },
      { name: 'several', label: 'Several labels may be true', kind: 'check', value: false },
    ],
    request: infer('zero-shot-classification', ({ text, labels, several }) =>
      ({ inputs: text, parameters: { candidate_labels: labels, multi_label: several } })),
    show: (labels) => bars(labels, 'Labels'),
  },
  {
    id: 'question-answering', title: 'Answers', fits: does('question-answering'),
    fields: [
      { name: 'question', label: 'Question', kind: 'line',
        value: own('text', 'When was the tower built?') },
      { name: 'context', label: 'Context', kind: 'text', rows: 7,
        value: own('context', 'The tower was built in 1889 for a fair in Paris. It was meant to '
          + 'stand for twenty years.') },
    ],
    request: infer('question-answering', ({ question, context }) =>
      ({ inputs: { question, context }, parameters: { top_k: 5 } })),
    show: showAnswers,
  },
  {
    id: 'token-classification', title: 'Entities', fits: does('token-classification'),
    fields: [
      { name: 'text', label: 'Text', kind: 'text', rows: 5,
        value: own('text', 'Marie Curie moved from Warsaw to Paris, and taught at the Sorbonne.') },
    ],
    request: infer('token-classification', ({ text }) =>
      ({ inputs: text, parameters: { aggregation_strategy: 'first' } })),
    show: showEntities,
  },
  {
    id: 'fill-mask', title: 'Masked words', fits: does('fill-mask'),
    fields: [
      { name: 'text', label: 'Text with masks', kind: 'text', mask: true,
        value: (model) => `Paris is the ${maskOf(model)} of France.` },
    ],
    request: infer('fill-mask', ({ text }) => ({ inputs: text, parameters: { top_k: 8 } })),
    show: (answer) => {
      const masks = Array.isArray(answer[0]) ? answer : [answer];
      return masks.map((words, place) => make('section', {},
        masks.length > 1 ? make('h3', {}, `Mask ${place + 1}`) : null,
        bars(words.map((each) => ({ label: each.token_str, score: each.score })),
          `Words for mask ${place + 1}`)));
    },
  },
  {
    id: 'text-generation', title: 'More text', fits: does('text-generation'),
    fields: [
      { name: 'prompt', label: 'Beginning of the text', kind: 'text', value: 'Once upon a time' },
      { name: 'tokens', label: 'Maximum tokens', kind: 'number', value: 60, min: 1, step: 1 },
      { name: 'temperature', label: 'Temperature', kind: 'number', value: 0.8, min: 0, step: 0.1,
        help: '0 always takes the most likely token.' },
    ],
    request: complete,
    run: write,
  },
  {
    id: 'sentence-similarity', title: 'Similarity', fits: does('sentence-similarity'),
    fields: [{ name: 'texts', label: 'Sentences, one per line', kind: 'text', rows: 8,
      value: SENTENCES }],
    request: embed,
    run: ({ texts }, model, signal) =>
      call('page/map', { model: model.id, texts: lines(texts) }, signal),
    show: ({ similarities }, { texts }) => [
      heatMap(lines(texts), similarities),
      make('p', { class: 'hint' }, 'Cosines of the sentences’ vectors: 1 is the same direction.'),
    ],
  },
  {
    id: 'neighbours', title: 'Neighbours', fits: does('feature-extraction'),
    fields: [
      { name: 'query', label: 'Query', kind: 'line', value: 'Two pets on a pillow' },
      { name: 'texts', label: 'Sentences, one per line', kind: 'text', rows: 8, value: SENTENCES },
    ],
    request: embed,
    run: ({ texts, query }, model, signal) =>
      call('page/map', { model: model.id, texts: [...lines(texts), query] }, signal),
    show: showNeighbours,
  },
  {
    id: 'multiple-choice', title: 'Choices', fits: does('multiple-choice'),
    fields: [
      { name: 'text', label: 'Text', kind: 'text',
        value: own('text', 'She opened her umbrella because') },
      { name: 'choices', label: 'Choices, one per line', kind: 'text',
        value: (model) => (model.example.choices ?? ['it had begun to rain.', 'the soup was cold.',
          'her brother plays chess.']).join('\n') },
    ],
    request: infer('multiple-choice', ({ text, choices }) =>
      ({ inputs: { text, choices: lines(choices) } })),
    show: ({ scores }, { choices }) => bars(best(lines(choices), scores), 'Choices'),
  },
  {
    id: 'next-sentence', title: 'Next sentence', fits: does('next-sentence'),
    fields: [
      { name: 'text', label: 'First sentence', kind: 'text', value: 'It began to rain.' },
      { name: 'pair', label: 'Second sentence', kind: 'text', value: 'She opened her umbrella.' },
    ],
    request: infer('next-sentence', ({ text, pair }) => ({ inputs: { text, text_pair: pair } })),
    show: ({ label, score: value }) => {
      const other = label === 'IsNext' ? 'NotNext' : 'IsNext';
      return bars([{ label, score: value }, { label: other, score: 1 - value }], 'Labels');
    },
  },
  {
    id: 'rerank', title: 'Ranking', fits: does('rerank'),
    fields: [
      { name: 'query', label: 'Query', kind: 'line', value: 'How do cats sleep?' },
      { name: 'texts', label: 'Texts, one per line', kind: 'text', rows: 8, value: SENTENCES },
    ],
    request: infer('rerank', ({ query, texts }) =>
      ({ inputs: { query, documents: lines(texts) } })),
    show: (ranked, { texts }) => bars(ranked.map((each) =>
      ({ label: lines(texts)[each.corpus_id], score: each.score })), 'Texts'),
  },
  {
    id: 'attention', title: 'Attention', fits: (model) => model.task !== 'text-generation',
    fields: [
      { name: 'text', label: 'Text', kind: 'text',
        value: 'The animal didn’t cross the street because it was too tired.' },
      SECOND,
    ],
    run: ({ text, pair }, model, signal) => call('page/attentions',
      { model: model.id, text, text_pair: pair || null }, signal),
    show: (answer) => attentionView(answer),
  },
];

export function maskOf(model) {
  return model.mask_token ?? '[MASK]';
}

function best(labels, scores) {
  return labels.map((label, place) => ({ label, score: scores[place] }))
    .sort((one, other) => other.score - one.score);
}

function showAnswers(answer, { context }) {
  const answers = Array.isArray(answer) ? answer : [answer];
  const box = make('div');
  const buttons = answers.map((each) => make('button', {
    type: 'button', class: 'choice', click: () => mark(each),
  }, make('span', { class: 'label' }, each.answer || 'no answer'),
    make('span', {}, score(each.score))));

  function mark(chosen) {
    box.replaceChildren(markedText(context, chosen.end > chosen.start ? [chosen] : []));
    buttons.forEach((button, place) =>
      button.setAttribute('aria-pressed', String(answers[place] === chosen)));
  }

  mark(answers[0]);
  return [
    box, make('h3', {}, answers.length > 1 ? 'Best answers' : 'Answer'),
    make('div', { class: 'choices' }, buttons),
    make('p', { class: 'hint' }, 'A score compares the answers in this text. '
      + 'A low one may mean that the text has none.'),
  ];
}

function showEntities(entities, { text }) {
  if (!entities.length) return make('p', {}, 'No entities were found.');
  const counts = new Map();
  for (const { entity_group: name } of entities) counts.set(name, (counts.get(name) ?? 0) + 1);
  const colour = colourOf(counts.keys());
  return [
    markedText(text, entities.map(({ start, end, entity_group: label }) =>
      ({ start, end, label, colour: colour(label) }))),
    legend(counts, colour),
    make('h3', {}, 'Entities'),
    make('ul', { class: 'entities' }, entities.map(({ word, entity_group: name, score: value }) =>
      make('li', {}, make('span', { class: 'label' }, word),
        make('span', { class: `tag colour-${colour(name)}` }, name),
        make('span', { class: 'value' }, score(value))))),
  ];
}

async function write(values, model, signal, target) {
  const written = make('span', { class: 'written' });
  target.replaceChildren(make('p', { class: 'marked' }, values.prompt, written));
  await stream(complete(values, model), signal, (text) => written.append(text));
}

function showNeighbours({ points, similarities }, { texts, query }) {
  const sentences = lines(texts);
  const cosines = similarities[sentences.length].slice(0, sentences.length);
  const order = sentences.map((_, place) => place)
    .sort((one, other) => cosines[other] - cosines[one]);
  return [
    neighbourMap([...sentences, query], points, order.slice(0, NEAREST)),
    make('h3', {}, 'Nearest first'),
    bars(order.map((place) => ({
      label: `${place + 1}. ${sentences[place]}`, score: Math.max(0, cosines[place]),
      text: score(cosines[place]),
    })), 'Sentences'),
  ];
}
