/**
 * Programs from npm and PyPI that only a test needs: pinned, installed on first use, and kept in node_modules for the next run. They
 * are no devDependencies, so a checkout without tests does not install them.
 */
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const HOME = resolve(import.meta.dirname, '../../node_modules/.errand-packages')
const run = promisify(execFile)

/** Installs npm packages like `deno@2.9.6`, without install scripts. Resolves with the directory that has their node_modules. */
export async function npmPackages(...packages: readonly string[]): Promise<string> {
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  return installOnce(packages, (directory) => ['npm', 'install', '--prefix', directory, ...flags, ...packages])
}

/** Installs PyPI packages like `openapi-python-client==0.29.1` for Debian's Python. Resolves with a directory for PYTHONPATH. */
export async function pythonPackages(...packages: readonly string[]): Promise<string> {
  const flags = ['--quiet', '--disable-pip-version-check', '--no-warn-script-location', '--only-binary', ':all:']
  return installOnce(packages, (directory) => [
    ...['/usr/bin/python3', '-m', 'pip', 'install', '--target', directory],
    ...flags,
    ...packages,
  ])
}

/** Tests that run at the same time wait for one installation; one that was interrupted is begun again. */
async function installOnce(
  packages: readonly string[],
  command: (directory: string) => readonly string[],
): Promise<string> {
  const directory = join(HOME, packages.join(',').replaceAll('/', '+'))
  mkdirSync(HOME, { recursive: true })
  const install =
    'directory=$1; shift; [ -e "$directory/.complete" ] || { rm -rf "$directory"; mkdir "$directory"; "$@"; touch "$directory/.complete"; }'
  // The whole environment: a registry may need a proxy, or certificates of its own.
  await run('flock', [`${directory}.lock`, 'sh', '-ec', install, 'sh', directory, ...command(directory)], {
    env: process.env,
    maxBuffer: 16 * 1024 * 1024,
  })
  return directory
}
