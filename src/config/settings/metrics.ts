/** Port and key for reading metrics. */
import { type Setting, text, whole } from '../setting.ts'

export const METRIC_SETTINGS: readonly Setting[] = [
  whole('metrics.port', { min: 0, max: 65_535, doc: 'Separate port for `GET /metrics`, on `host`.' }),
  text('metrics.key', {
    must: 'at least 16 characters without spaces',
    pattern: /^\S{16,}$/,
    secret: true,
    doc: 'Key for `GET /metrics` on the main port: `Authorization: Bearer …`.',
  }),
]
