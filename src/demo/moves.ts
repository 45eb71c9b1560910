/** Tool calls and answers that several kinds of task use. */
import type { Answer, Call, Fact, Table, Work } from './task.ts'

export function runPython(thought: string, code: string): Call {
  return { thought, tool: 'code_execution', args: { language: 'python', code } }
}

export function answer(thought: string, text: string, facts: readonly Fact[] = []): Answer {
  return { thought, text, facts }
}

/** The answer if a program did not print what it should. */
export function failed(what: string, output: string): Answer {
  const end = output.trim().split('\n').slice(-8).join('\n    ')
  const text = `I could not ${what}: the code that I ran failed. The end of its output:\n\n    ${end}`
  return { ...answer('The step failed, so I have no result.', text), failed: true }
}

export function needs(tool: string, what: string): Answer {
  const text = `To ${what} I need the tool \`${tool}\`, which is not enabled for this run. Send the request again with \`"tools": ["${tool}"]\`.`
  return { ...answer(`That takes the tool ${tool}, which is not enabled here.`, text), failed: true }
}

/** Writes a text file, with file_write if it is enabled, else with code. Returns whether it was written, and the output. */
export function* writeText(
  tools: ReadonlySet<string>,
  path: string,
  content: string,
): Generator<Call, { readonly done: boolean; readonly output: string }, string> {
  const code = `import os

path = ${JSON.stringify(path)}
os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
with open(path, "w", encoding="utf-8") as file:
    file.write(${JSON.stringify(content)})
print("Wrote", os.path.getsize(path), "bytes to", path)
`
  const output = yield tools.has('file_write')
    ? { thought: `I write ${path}.`, tool: 'file_write', args: { path, content } }
    : runPython(`I write ${path}.`, code)
  return { done: output.startsWith('Wrote '), output }
}

/** Does the task and writes its answer to a file as well, if one was named. */
export function* saving(work: Work, save: string | undefined, tools: ReadonlySet<string>): Work {
  const said = yield* work
  if (save === undefined || said.failed) return said
  if (!tools.has('file_write') && !tools.has('code_execution')) return needs('file_write', `write ${save}`)
  const content = said.table && save.endsWith('.csv') ? csvOf(said.table) : said.text
  const { done, output } = yield* writeText(tools, save, `${content}\n`)
  return done ? { ...said, text: `${said.text}\n\nThe result is saved in ${save}.` } : failed(`write ${save}`, output)
}

function csvOf({ header, rows }: Table): string {
  const cell = (value: string | number) =>
    /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value)
  return [header, ...rows].map((row) => row.map(cell).join(',')).join('\n')
}
