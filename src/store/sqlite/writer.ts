/** The thread that writes to SQLite. A write is durable before the reply (WAL with synchronous=FULL). Deleted content is overwritten. */
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { createBatchRunner } from './batch.ts'
import { createUnpacker, type Packet, packReply } from './packet.ts'
import { createReclaimer } from './reclaim.ts'

const { file, busyTimeoutMs } = workerData as { file: string; busyTimeoutMs: number }
const db = new DatabaseSync(file, { timeout: busyTimeoutMs })
db.exec('PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864')
db.exec('PRAGMA secure_delete = ON')
const runBatch = createBatchRunner(db)
const unpack = createUnpacker()
const reclaim = createReclaimer(db, busyTimeoutMs)

parentPort!.on('message', (message: Packet | 'reclaim' | 'close') => {
  if (message === 'close') {
    db.close()
    parentPort!.close()
    return
  }
  if (message === 'reclaim') {
    parentPort!.postMessage(reclaim())
    return
  }
  parentPort!.postMessage(packReply(runBatch(unpack(message))))
})
