/** Removes all occurrences of `end` from the end of `text`. Linear, unlike `/x+$/`, which starts over at each x. */
export function withoutEnd(text: string, end: string): string {
  let { length } = text
  while (length > 0 && text.endsWith(end, length)) length -= end.length
  return text.slice(0, length)
}
