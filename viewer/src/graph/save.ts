// The whole river as a picture of its own: colours are written out, as there is no style sheet where it goes.
const properties = ['fill', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'opacity', 'font', 'fill-opacity'];

export function saveSvg() {
  const shown = document.querySelector<SVGSVGElement>('#river');
  if (!shown) return;
  const copy = shown.cloneNode(true) as SVGSVGElement;
  const from = shown.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((element, i) => {
    const style = getComputedStyle(from[i]!);
    element.setAttribute('style', properties.map((p) => `${p}:${style.getPropertyValue(p)}`).join(';'));
    element.removeAttribute('class');
  });
  const box = shown.getBBox();
  copy.setAttribute('viewBox', `${box.x - 10} ${box.y - 10} ${box.width + 20} ${box.height + 20}`);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('style', `background:${getComputedStyle(document.body).backgroundColor}`);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' }));
  link.download = 'river.svg';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
