/**
 * The next move. A task is a generator that is run from its beginning over the outputs of the calls so far: what it
 * yields beyond them is the next call, what it returns is the answer. So the transcript is the only state, and the
 * same transcript always comes to the same move.
 */
import { dataTask } from './data-task.ts'
import { freshSandboxText, helpText, missingFileText, needsWordsText, whichFileText } from './help.ts'
import { answer, atOnce } from './moves.ts'
import { arithmeticTask, codeTask, listTask, searchTask, sequenceTask, showTask, writeTask } from './small-tasks.ts'
import type { Answer, Call, Task, Work } from './task.ts'
import type { Transcript } from './transcript.ts'

export type Move = { readonly kind: 'call'; readonly call: Call } | { readonly kind: 'answer'; readonly answer: Answer }

export function nextMove(task: Task, transcript: Transcript): Move {
  const work = workOn(task, transcript)
  let step = work.next()
  for (const output of transcript.outputs) {
    if (step.done) break
    step = work.next(output)
  }
  return step.done ? { kind: 'answer', answer: step.value } : { kind: 'call', call: step.value }
}

function workOn(task: Task, { tools, files }: Transcript): Work {
  switch (task.kind) {
    case 'data':
      return dataTask(task, tools)
    case 'arithmetic':
      return arithmeticTask(task, tools)
    case 'sequence':
      return sequenceTask(task, tools)
    case 'run_code':
      return codeTask(task, tools)
    case 'write_file':
      return writeTask(task, tools)
    case 'search':
      return searchTask(task, tools)
    case 'list_files':
      return listTask(tools)
    case 'show_file':
      return showTask(task, tools)
    case 'missing_file':
      return atOnce(answer(`${task.name} is not attached.`, missingFileText(task.name, task.attached)))
    case 'which_file':
      return atOnce(answer('Several files could be meant.', whichFileText(task.attached)))
    case 'fresh_sandbox':
      return atOnce(answer('The file of the earlier turn is gone with its sandbox.', freshSandboxText(task.name)))
    case 'needs_words':
      return atOnce(answer('I have no words of my own for that.', needsWordsText(task.path)))
    case 'unknown':
      return atOnce(
        answer(
          'None of the tasks I know fits.',
          helpText(
            files.map(({ name }) => name),
            tools,
          ),
        ),
      )
    default:
      return task satisfies never
  }
}
