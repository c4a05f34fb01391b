// Elements from names, attributes and children. Strings become text, never markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function makeSvg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function score(value) {
  return value.toFixed(3);
}

export function shorten(text, size) {
  return text.length > size ? `${text.slice(0, size - 1).trimEnd()}…` : text;
}

// Draws now, and again whenever the width of the element changes.
export function drawToWidth(node, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (node.clientWidth && node.clientWidth !== width) {
      width = node.clientWidth;
      draw(width);
    }
  }).observe(node);
}
