/**
 * What a sandbox sees as its root: the host's /usr with a minimal /etc made here, or a configured directory tree; all of
 * it read-only. Nothing of the host's /etc but what programs need to start, nothing of /root, /home, /var.
 */
import { existsSync, lstatSync, readdirSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Shown in the sandbox's /etc where the host has them. No keys: `ssl/private` is not among them. */
const SHOWN_OF_ETC = [
  'alternatives',
  'fonts',
  'ld.so.cache',
  'localtime',
  'matplotlibrc',
  'mime.types',
  'ssl/certs',
  'ssl/openssl.cnf',
]

const WRITTEN_INTO_ETC: Readonly<Record<string, string>> = {
  passwd:
    'root:x:0:0:root:/:/bin/false\nerrand:x:1000:1000:errand:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n',
  group: 'root:x:0:\nerrand:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
}

/** Entries of a configured tree that the sandbox has its own of. */
const OWN_TOP_LEVEL = new Set(['dev', 'errand', 'proc', 'run', 'sys', 'tmp', 'workspace'])

/** The bubblewrap arguments that make the root; `tree` is where the cell comes to `rootfs`. `scratch` is ours to write to and readable by every uid. */
export function rootArguments(rootfs: string | undefined, tree: string | undefined, scratch: string): string[] {
  if (rootfs !== undefined) return treeArguments(rootfs, tree ?? rootfs)
  const links = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'].flatMap((name) => shown(`/${name}`, `/${name}`))
  return ['--ro-bind', '/usr', '/usr', ...links, ...etcArguments(scratch)]
}

/** Whether the tree has a Node of its own; the host's /usr never counts: it may be of any age. */
export function hasNode(rootfs: string | undefined): boolean {
  return rootfs !== undefined && ['usr/local/bin/node', 'usr/bin/node'].some((path) => existsSync(join(rootfs, path)))
}

function treeArguments(rootfs: string, tree: string): string[] {
  return readdirSync(rootfs)
    .filter((name) => !OWN_TOP_LEVEL.has(name))
    .flatMap((name) => shown(join(rootfs, name), `/${name}`, join(tree, name)))
}

/** A symbolic link stays one, so that it resolves inside; anything else is bound read-only. */
function shown(source: string, target: string, near = source): string[] {
  const found = lstatSync(source, { throwIfNoEntry: false })
  if (!found) return []
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(source), target] : ['--ro-bind', near, target]
}

/** Bound piece by piece, not copied: there are hundreds of links among certificates and alternatives. */
function etcArguments(scratch: string): string[] {
  const ofHost = SHOWN_OF_ETC.flatMap((name) => shown(join('/etc', name), join('/etc', name)))
  const own = Object.entries(WRITTEN_INTO_ETC).flatMap(([name, text]) => {
    const source = join(scratch, name)
    writeFileSync(source, text, { mode: 0o644 })
    return ['--ro-bind', source, join('/etc', name)]
  })
  return [...ofHost, ...own]
}

/** Whether a process of another uid can come to the file and run it. */
export function isReachable(path: string): boolean {
  for (let place = dirname(path); ; place = dirname(place)) {
    if ((statSync(place).mode & 0o001) === 0) return false
    if (place === '/') return (statSync(path).mode & 0o005) === 0o005
  }
}
