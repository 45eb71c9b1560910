/** Formats JSON as a person would: a value that fits into `width` is on one line, others have a line for each field. */
export function writtenJson(value: unknown, width: number, indent = ''): string {
  const line = onOneLine(value)
  if (typeof value !== 'object' || value === null || indent.length + line.length < width) return line
  const inner = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((each) => inner + writtenJson(each, width, inner))
    : Object.entries(value).map(([name, each]) => `${inner}${JSON.stringify(name)}: ${writtenJson(each, width, inner)}`)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  return `${open}\n${parts.join(',\n')}\n${indent}${close}`
}

function onOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([name, field]) => `${JSON.stringify(name)}: ${onOneLine(field)}`)
  return `{${fields.join(', ')}}`
}
