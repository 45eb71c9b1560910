/** Whether a value from outside is nested so little that it can be written again: parsing takes any depth, writing does not. */
export function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((part) => isShallow(part, depth - 1))
}
