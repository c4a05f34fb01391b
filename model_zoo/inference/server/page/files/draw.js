// Results as elements: bars, marked texts, a heat map, a map.

import { drawToWidth, make, makeSvg, score, shorten } from './dom.js';

const COLOURS = 8;

// The numbers that a regression predicts.
export function numbers(rows, title) {
  return make('dl', { class: 'numbers', 'aria-label': title }, rows.flatMap((row) =>
    [make('dt', {}, row.label), make('dd', {}, score(row.score))]));
}

// Rows of { label, score, text }; a score outside of 0 to 1 is shown as a number alone.
export function bars(rows, title) {
  const isShare = rows.every((row) => row.score >= 0 && row.score <= 1);
  const items = rows.map((row, place) => {
    const own = make('li', { class: place === 0 ? 'best' : null },
      make('span', { class: 'label' }, row.label),
      make('span', { class: 'value' }, row.text ?? score(row.score)));
    if (isShare) {
      const bar = make('span', { class: 'bar' });
      bar.style.width = `${100 * row.score}%`;
      own.append(make('span', { class: 'track', 'aria-hidden': 'true' }, bar));
    }
    return own;
  });
  return make('ol', { class: 'bars', 'aria-label': title }, items);
}

// A text with marks { start, end, label, colour }, in order and without overlaps.
// Offsets count code points, as Python's do.
export function markedText(text, marks) {
  const letters = Array.from(text);
  const parts = [];
  let place = 0;
  for (const mark of marks) {
    parts.push(letters.slice(place, mark.start).join(''));
    parts.push(make('mark', { class: `colour-${mark.colour ?? 0}` },
      letters.slice(mark.start, mark.end).join(''),
      mark.label ? make('span', { class: 'tag' }, mark.label) : null));
    place = mark.end;
  }
  parts.push(letters.slice(place).join(''));
  return make('p', { class: 'marked' }, parts);
}

export function colourOf(names) {
  const sorted = [...new Set(names)].sort();
  return (name) => sorted.indexOf(name) % COLOURS;
}

export function legend(counts, colour) {
  const items = [...counts].map(([name, count]) =>
    make('li', {}, make('span', { class: `swatch colour-${colour(name)}` }), `${name} (${count})`));
  return make('ul', { class: 'legend', 'aria-label': 'Legend' }, items);
}

// Cosines of texts with one another, as a table.
export function heatMap(texts, rows) {
  const head = make('tr', {}, make('td'), texts.map((text, place) =>
    make('th', { scope: 'col', title: text }, String(place + 1))));
  const body = rows.map((row, place) => make('tr', {},
    make('th', { scope: 'row', title: texts[place] },
      make('span', { class: 'number' }, String(place + 1)), texts[place]),
    row.map((value) => {
      const cell = make('td', {}, value.toFixed(2));
      cell.style.setProperty('--heat', `${Math.round(100 * Math.max(0, Math.min(1, value)))}%`);
      if (value > 0.55) cell.className = 'hot';
      return cell;
    })));
  return make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Similarities' },
    make('table', { class: 'heat' }, make('thead', {}, head), make('tbody', {}, body)));
}

const LABEL_HEIGHT = 18;
const LABEL_SIZE = 38;
const LABEL_GAP = 14; // from the middle of a spot
const LABEL_SHIFTS = [0, 1, -1, 2, -2].map((lines) => lines * LABEL_HEIGHT * 1.1);
const RADIUS = 10;
const WIDE = 600; // from here on there is room for labels

// Points in the plane; the last is the query, and lines lead to its nearest neighbours.
export function neighbourMap(texts, points, nearest) {
  const box = make('div', { class: 'map' });
  drawToWidth(box, (width) => box.replaceChildren(drawMap(texts, points, nearest, width)));
  return box;
}

function drawMap(texts, points, nearest, width) {
  const isWide = width >= WIDE;
  const height = Math.round(Math.min(440, Math.max(300, width * 0.55)));
  const marginX = isWide ? 140 : 26;
  const place = scaler(points, width, height, marginX, 30);
  const spots = points.map((point, index) => {
    const [x, y] = place(point);
    return { x, y, text: texts[index], index, isRight: x < width / 2 };
  });
  const query = spots[spots.length - 1];
  const root = makeSvg('svg', {
    viewBox: `0 0 ${width} ${height}`, width, height, role: 'img',
    'aria-label': `Map of ${texts.length} sentences; similar ones are near each other`,
  });
  for (const index of nearest) {
    const { x, y } = spots[index];
    root.append(makeSvg('line', { x1: query.x, y1: query.y, x2: x, y2: y, class: 'near' }));
  }
  for (const spot of spots) {
    const isQuery = spot === query;
    const kind = isQuery ? 'query' : nearest.includes(spot.index) ? 'neighbour' : 'other';
    root.append(makeSvg('g', { class: `spot ${kind}` },
      makeSvg('circle', { cx: spot.x, cy: spot.y, r: RADIUS }),
      makeSvg('text', { x: spot.x, y: spot.y + 4, 'text-anchor': 'middle', class: 'number' },
        isQuery ? '?' : String(spot.index + 1)),
      makeSvg('title', {}, spot.text)));
  }
  const first = [query, ...nearest.map((index) => spots[index]), ...spots];
  if (isWide) root.append(...labelsOf([...new Set(first)], width, height));
  return root;
}

function scaler(points, width, height, marginX, marginY) {
  const range = (axis) => {
    const values = points.map((point) => point[axis]);
    const low = Math.min(...values);
    return [low, Math.max(...values) - low || 1];
  };
  const [[left, wide], [top, high]] = [range(0), range(1)];
  return ([x, y]) => [
    marginX + ((x - left) / wide) * (width - 2 * marginX),
    height - marginY - ((y - top) / high) * (height - 2 * marginY),
  ];
}

// Labels that cover neither one another nor a spot, of the first spots first; one without room is
// left out, as the list below the map has it.
function labelsOf(spots, width, height) {
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  const taken = spots.map(({ x, y }) =>
    ({ left: x - RADIUS, right: x + RADIUS, top: y - RADIUS, bottom: y + RADIUS }));
  const meets = (one) => taken.some((other) => one.left < other.right && other.left < one.right
    && one.top < other.bottom && other.top < one.bottom);
  const labels = [];
  for (const { x, y, text, isRight } of spots) {
    const label = shorten(text, LABEL_SIZE);
    const size = pen.measureText(label).width + 2;
    const lefts = [x + LABEL_GAP, x - LABEL_GAP - size];
    const boxes = [...(isRight ? lefts : lefts.reverse()), x - size / 2].flatMap((left) =>
      LABEL_SHIFTS.map((shift) => ({ left, right: left + size,
        top: y + shift - LABEL_HEIGHT / 2, bottom: y + shift + LABEL_HEIGHT / 2 })));
    const box = boxes.find((one) => one.left >= 0 && one.right <= width && one.top >= 0
      && one.bottom <= height && !meets(one));
    if (box) {
      taken.push(box);
      labels.push(makeSvg('text', {
        x: box.left + 1, y: box.bottom - 5, class: 'spot-label', 'aria-hidden': 'true',
      }, label));
    }
  }
  return labels;
}
