/** The form of the next run: instruction, settings and files. It can be filled from an earlier run. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { NO_SETTINGS, type Settings } from '../agent-form/settings.ts'
import type { Interaction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { runQuery } from '../server/queries.ts'
import { toast } from '../ui/toast.tsx'
import type { Attached } from './composer.tsx'
import { droppedSignIns, filesOfRun, type Origin, originOf, settingsOfRun } from './rerun.ts'

const INITIAL: Settings = { ...NO_SETTINGS, tools: ['code_execution', 'file_read', 'file_write'] }

/**
 * `again`: the id of a run to repeat; it fills the whole form. `opened`: the run that is shown; it fills the settings, so
 * that the conversation continues with them, unless `keepSettings`.
 */
export function useRunForm(again: string | undefined, opened: Interaction | undefined, keepSettings: boolean) {
  const [settings, setSettings] = useState(INITIAL)
  const [instruction, setInstruction] = useState('')
  /** Properties of the repeated run in addition to its settings. */
  const [origin, setOrigin] = useState<Origin>()
  const [files, setFiles] = useState<readonly Attached[]>([])
  const earlier = useQuery({ ...runQuery(again ?? ''), enabled: again !== undefined })

  const filledFrom = useRef<string>(undefined)
  useEffect(() => {
    // Once only: a later fetch must not overwrite what was changed in the form.
    if (!earlier.data || filledFrom.current === again) return
    filledFrom.current = again
    setInstruction(earlier.data.instruction)
    setSettings(settingsOfRun(earlier.data))
    setOrigin(originOf(earlier.data))
    filesOfRun(earlier.data).then(setFiles, (error) => toast(Problem.from(error).message, true))
    const dropped = droppedSignIns(earlier.data)
    if (dropped.length > 0)
      toast(`Credentials sent with the run are not stored. Enter them again for: ${dropped.join(', ')}`, true)
  }, [earlier.data, again])

  // A run that was not sent from this page: after a reload, or from a link.
  useEffect(() => {
    if (!opened || filledFrom.current === opened.id) return
    filledFrom.current = opened.id
    if (keepSettings) return
    setSettings(settingsOfRun(opened))
    setOrigin(originOf(opened))
  }, [opened, keepSettings])

  return { settings, setSettings, instruction, setInstruction, origin, setOrigin, files, setFiles }
}
