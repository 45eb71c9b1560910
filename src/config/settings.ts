/** The table of all settings, in the order of the reference; src/config/settings/ has one file for each subject. */
import type { Setting } from './setting.ts'
import { CONSOLE_SETTINGS } from './settings/console.ts'
import { FILE_SETTINGS } from './settings/files.ts'
import { LIMIT_SETTINGS } from './settings/limits.ts'
import { METRIC_SETTINGS } from './settings/metrics.ts'
import { MODEL_SETTINGS } from './settings/models.ts'
import { SANDBOX_SETTINGS } from './settings/sandbox.ts'
import { SERVER_SETTINGS } from './settings/server.ts'
import { TOOL_SETTINGS } from './settings/tools.ts'

/** Variables that begin with ERRAND_ and are not settings of the server. */
export const OTHER_VARIABLES: Readonly<Record<string, string>> = {
  ERRAND_CONFIG: 'Configuration file. Default: `errand.yaml`, if it exists. `--config` overrides it.',
  ERRAND_HOME:
    'Directory of `errand.yaml` and `./data`. Default: the current directory. `script/server` and `script/errand` set it to the checkout.',
  ERRAND_BASE_URL:
    'For the clients, `errand run` and the other commands that call a server: its address, if `--server` is not given.',
  ERRAND_API_KEY:
    'For the clients, `errand run` and the other commands that call a server: the key, if `--key` is not given.',
  ERRAND_WEBHOOK_SECRET:
    'For programs that verify webhooks: the output of `errand webhooks secret`. The server does not read it.',
  ERRAND_CRASH_AT:
    'For tests of recovery: crash point at which the server kills itself. `tool-begins` is the first time, `after-write:3` the third. `src/engine/dependencies.ts` lists the points.',
}

export const SETTINGS: readonly Setting[] = [
  ...SERVER_SETTINGS,
  ...CONSOLE_SETTINGS,
  ...MODEL_SETTINGS,
  ...SANDBOX_SETTINGS,
  ...TOOL_SETTINGS,
  ...FILE_SETTINGS,
  ...METRIC_SETTINGS,
  ...LIMIT_SETTINGS,
]
