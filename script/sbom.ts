/**
 * Prints the SBOM (CycloneDX) of the server and the console, from the lock file: `node script/sbom.ts [DIRECTORY]`. The directory
 * defaults to this checkout. The same lock file and SOURCE_DATE_EPOCH give the same bytes. Exits with 1, and lists the packages, if
 * a package has an install script or a license that is not listed here.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Licenses that allow use, change and distribution under Apache-2.0 with only a notice. Review another license before you add it. */
const ALLOWED = new Set([
  ...['MIT', 'Apache-2.0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause'],
  ...['BlueOak-1.0.0', 'CC0-1.0', 'Unlicense', 'Python-2.0'],
])

interface Component {
  readonly name: string
  readonly version: string
  readonly licenses?: readonly { readonly license?: { id?: string; name?: string }; readonly expression?: string }[]
}

interface Sbom {
  serialNumber: string
  readonly metadata: { timestamp: string; readonly component: Component & { name: string } }
  readonly components: readonly Component[]
}

interface Locked {
  readonly dev?: boolean
  readonly version?: string
  readonly hasInstallScript?: boolean
}

/** License as an SPDX expression; undefined if the package names none. */
function licenseOf({ licenses = [] }: Component): string | undefined {
  return (
    licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name).join(' AND ') || undefined
  )
}

/** Whether one alternative of an `OR` is allowed. Expressions with `AND` or `WITH` must be listed as a whole. */
function isAllowed(license: string): boolean {
  const choices = license.replace(/^\((.*)\)$/, '$1').split(' OR ')
  return choices.some((choice) => ALLOWED.has(choice))
}

function problemsOf({ components }: Sbom, packages: Readonly<Record<string, Locked>>): string[] {
  const licenses = components.flatMap((component) => {
    const license = licenseOf(component)
    if (license !== undefined && isAllowed(license)) return []
    return [
      `${component.name}@${component.version}: ${license === undefined ? 'has no license' : `${license} is not an allowed license`}.`,
    ]
  })
  const scripts = Object.entries(packages)
    .filter(([, { dev, hasInstallScript }]) => hasInstallScript && !dev)
    .map(([path, { version }]) => `${path.replace(/.*node_modules\//, '')}@${version}: has an install script.`)
  return [...licenses, ...scripts]
}

/** Replaces values that npm changes with each call (a random number, the time, the folder's name) by values from the lock file. */
function settle(sbom: Sbom, name: string): void {
  sbom.metadata.component.name = name
  sbom.metadata.timestamp = new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1_000).toISOString()
  sbom.serialNumber = ''
  const hash = createHash('sha256').update(JSON.stringify(sbom)).digest('hex')
  // UUID version 8, for custom hashes (RFC 9562).
  const parts = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ]
  sbom.serialNumber = `urn:uuid:${parts.join('-')}`
}

const directory = resolve(process.argv[2] ?? join(import.meta.dirname, '..'))
const lock = JSON.parse(readFileSync(join(directory, 'package-lock.json'), 'utf8'))
const flags = ['--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application']
const options = { cwd: directory, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const
const sbom: Sbom = JSON.parse(execFileSync('npm', ['sbom', ...flags, '--loglevel=error'], options))
const problems = problemsOf(sbom, lock.packages)
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exit(1)
}
settle(sbom, lock.name)
console.log(JSON.stringify(sbom, null, 2))
