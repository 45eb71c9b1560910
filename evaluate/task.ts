/** A task of the evaluation: a request, and a grader that checks the result by program. */
import type { InteractionRequest } from '../clients/typescript/src/index.ts'
import type { Services } from './services.ts'

/** Result of a run. */
export interface TaskResult {
  readonly output: string
  /** Output files by name. */
  readonly files: ReadonlyMap<string, string>
}

export interface Task {
  readonly name: string
  /** One line for the report. */
  readonly about: string
  /** True if runs need the evaluation's own web site or MCP servers, which a remote server cannot reach. */
  readonly needsServices: boolean
  request(services: Services): InteractionRequest
  /** Returns the reason if the task is not solved; undefined if it is. */
  grade(result: TaskResult): string | undefined
}

/** Reads the JSON object that an answer consists of. Code fences around it are allowed. */
export function jsonAnswer(output: string): Readonly<Record<string, unknown>> | undefined {
  const text = output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1)
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}
