/**
 * Generates the client's types from a server's OpenAPI document: `node clients/typescript/generate.ts OPENAPI.JSON DIRECTORY`
 * writes `types.ts` there. It uses the console's generator.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CONSOLE = new URL('../../console/', import.meta.url).pathname
const [source, target] = process.argv.slice(2) as [string, string]
const { components, info, openapi } = JSON.parse(readFileSync(source, 'utf8'))
const directory = mkdtempSync(join(tmpdir(), 'errand-shapes-'))
// Only types are generated; the calls are written by hand.
const shapes = join(directory, 'shapes.json')
writeFileSync(shapes, JSON.stringify({ openapi, info, paths: {}, components: { schemas: components.schemas } }))
const args = ['-i', shapes, '-o', join(directory, 'out'), '-p', '@hey-api/typescript', '--silent']
execFileSync(process.execPath, [join(CONSOLE, 'node_modules/.bin/openapi-ts'), ...args], { cwd: directory })
const types = readFileSync(join(directory, 'out/types.gen.ts'), 'utf8')
writeFileSync(
  join(target, 'types.ts'),
  types
    .replace(/export type ClientOptions = \{[\s\S]*?\n\};\n+/, '')
    // `Error` is a global of JavaScript.
    .replaceAll(/\bexport type Error\b/g, 'export type ErrorBody'),
)
rmSync(directory, { recursive: true })
