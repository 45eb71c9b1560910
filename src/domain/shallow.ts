/** True if a value is nested at most `depth` levels. JSON.parse accepts any depth, but JSON.stringify overflows the stack. */
export function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((part) => isShallow(part, depth - 1))
}
