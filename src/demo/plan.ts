/**
 * The next move of a task. The task is run from its start over the outputs of the calls so far: if it yields another call,
 * that is the move; else its answer is. The transcript is the only state, so the same transcript leads to the same move.
 */
import { dataTask } from './data-task.ts'
import { helpText, missingFileText, needsWordsText, whichFileText } from './help.ts'
import { answer, saving } from './moves.ts'
import { arithmeticTask, codeTask, listTask, searchTask, sequenceTask, writeTask } from './small-tasks.ts'
import type { Answer, Call, Task, Work } from './task.ts'
import type { Transcript } from './transcript.ts'

type Move = { readonly kind: 'call'; readonly call: Call } | { readonly kind: 'answer'; readonly answer: Answer }

export function nextMove(task: Task, transcript: Transcript): Move {
  const work = workOn(task, transcript)
  if ('text' in work) return { kind: 'answer', answer: work }
  let step = work.next()
  for (const output of transcript.outputs) {
    if (step.done) break
    step = work.next(output)
  }
  return step.done ? { kind: 'answer', answer: step.value } : { kind: 'call', call: step.value }
}

function workOn(task: Task, { tools, files }: Transcript): Work | Answer {
  switch (task.kind) {
    case 'data':
      return saving(dataTask(task.file, task.question, tools), task.save, tools)
    case 'arithmetic':
      return saving(arithmeticTask(task.expression, tools), task.save, tools)
    case 'sequence':
      return saving(sequenceTask(task.sequence, tools), task.save, tools)
    case 'run_code':
      return codeTask(task, tools)
    case 'write_file':
      return writeTask(task, tools)
    case 'search':
      return searchTask(task.query, tools)
    case 'list_files':
      return listTask(tools)
    case 'missing_file':
      return answer(`${task.name} is not attached.`, missingFileText(task.name, task.attached))
    case 'which_file':
      return answer('Several files could be meant.', whichFileText(task.attached))
    case 'needs_words':
      return answer('I have no words of my own for that.', needsWordsText(task.path))
    case 'unknown':
      return answer('None of the tasks that I know fits.', helpText(files, tools))
    default:
      return task satisfies never
  }
}
