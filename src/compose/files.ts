/** The file store, and the skills that it holds. */
import { join } from 'node:path'
import { openDiskBlobs } from '../blobs/disk.ts'
import type { Blobs } from '../blobs/port.ts'
import { openS3Blobs } from '../blobs/s3.ts'
import type { Config } from '../config.ts'
import { openSkills } from '../skills/open-skills.ts'
import type { Database } from '../store/port.ts'
import type { ComposeContext } from './context.ts'

export type SkillRoom = Awaited<ReturnType<typeof openSkillRoom>>

export function openBlobs(location: Config['blobs']): Promise<Blobs> {
  return location.kind === 'disk' ? openDiskBlobs(location.directory) : openS3Blobs(location)
}

export async function openSkillRoom({ config, mode, log, closers }: ComposeContext, db: Database, blobs: Blobs) {
  const { dataDir, skillsDir, limits } = config
  const skills = await openSkills({
    db,
    blobs,
    workDirectory: join(dataDir, 'skills-work'),
    serverDirectory: skillsDir,
    limits,
    longestRunMs: (limits.maxTurnDuration.max + limits.queueWaitS) * 1_000,
    stays: mode === 'serve',
    log,
  })
  return closers.add(skills)
}
