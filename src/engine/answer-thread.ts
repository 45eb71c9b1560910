/** The thread that holds one answer against its caller's schema: `ready`, then what is wrong with it. */
import { parentPort, workerData } from 'node:worker_threads'
import type { JsonSchema } from '../domain/interaction.ts'
import { faultOf } from './response-format.ts'

export type Said = 'ready' | { readonly fault: string | undefined }

const say = (said: Said) => parentPort!.postMessage(said)
const { schema, answer } = workerData as { schema: JsonSchema; answer: string }
say('ready')
say({ fault: faultOf(schema, answer) })
