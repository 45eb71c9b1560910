/** Moves that several kinds of task make. */
import type { Answer, Call, Fact, Work } from './task.ts'

export function runPython(thought: string, code: string): Call {
  return { thought, tool: 'code_execution', args: { language: 'python', code } }
}

export function answer(thought: string, text: string, facts: readonly Fact[] = []): Answer {
  return { thought, text, facts }
}

/** What is said where a program did not bring what it should. */
export function failed(what: string, output: string): Answer {
  const tail = output.trim().split('\n').slice(-8).join('\n    ')
  return answer(
    'The step failed, so there is no result that I could give.',
    `I could not ${what}: the code that I ran failed. What it said at the end:\n\n    ${tail}`,
  )
}

export function needs(tool: string, what: string): Answer {
  return answer(
    `That takes the tool ${tool}, which is not enabled here.`,
    `To ${what} I need the tool \`${tool}\`, which is not enabled for this run. Send the request again with \`"tools": ["${tool}"]\`.`,
  )
}

/** A text file, by file_write where it is enabled, else by code. Returns whether it was written, and the tool's word. */
export function* writeText(
  tools: ReadonlySet<string>,
  path: string,
  content: string,
): Generator<Call, { readonly done: boolean; readonly output: string }, string> {
  if (tools.has('file_write')) {
    const output = yield { thought: `I write ${path}.`, tool: 'file_write', args: { path, content } }
    return { done: output.startsWith('Wrote '), output }
  }
  const code = `import os

path = ${JSON.stringify(path)}
os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
with open(path, "w", encoding="utf-8") as file:
    file.write(${JSON.stringify(content)})
print("Wrote", os.path.getsize(path), "bytes to", path)
`
  const output = yield runPython(`I write ${path}.`, code)
  return { done: output.startsWith('Wrote '), output }
}

/** For tasks that need no tool. */
// biome-ignore lint/correctness/useYield: a task that answers at once is still a task.
export function* atOnce(said: Answer): Work {
  return said
}
