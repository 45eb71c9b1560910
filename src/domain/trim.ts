/** `text` without the `end`s at its end. Linear, which `/x+$/` is not: that starts over at each x. */
export function withoutEnd(text: string, end: string): string {
  let { length } = text
  while (length > 0 && text.endsWith(end, length)) length -= end.length
  return text.slice(0, length)
}
