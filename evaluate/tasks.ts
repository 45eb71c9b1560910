/** The tasks of the evaluation. */
import type { Task } from './task.ts'
import { codeRepair } from './tasks/code-repair.ts'
import { dataAnalysis } from './tasks/data-analysis.ts'
import { manyTools } from './tasks/many-tools.ts'
import { refactoring } from './tasks/refactoring.ts'
import { webReading } from './tasks/web-reading.ts'

export const TASKS: readonly Task[] = [dataAnalysis, codeRepair, webReading, refactoring, manyTools]
