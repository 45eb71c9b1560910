/**
 * Runs in a network namespace where every address belongs to this machine: attacks from a sandbox, with the kernel's counters
 * before and after. Prints one JSON object.
 */
import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { openSandboxes } from '../../../src/sandbox/open-sandboxes.ts'
import { attackNetwork } from '../network-attacks.ts'

const PORT = 4711
const ADDRESSES = ['127.0.0.1', '10.0.0.1', '169.254.169.254', '192.0.2.1', '8.8.8.8', '::1', 'fd00::1', '2001:db8::1']
const { options, spec } = JSON.parse(process.argv[2]!)

for (const command of [
  'link set lo up',
  'address add 169.254.169.254/32 dev lo',
  'route add local default dev lo',
  '-6 route add local default dev lo',
]) {
  execFileSync('ip', command.split(' '))
}

let arrivals = 0
for (const port of [PORT, 53, 80]) {
  createServer((socket) => {
    arrivals++
    socket.destroy()
  }).listen(port, '::')
  createSocket('udp6')
    .on('message', () => arrivals++)
    .bind(port, '::')
}
createServer(() => arrivals++).listen('\0canary')

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const { signal } = new AbortController()
const sandboxes = await openSandboxes({ ...options, log: silent })
const sandbox = await sandboxes.open(spec, signal)

/** Packets that an interface of this namespace has seen, both ways. */
const packets = () => {
  return readFileSync('/proc/net/dev', 'utf8')
    .split('\n')
    .slice(2, -1)
    .map((line) => line.trim().split(/[\s:]+/))
    .reduce((sum, fields) => sum + Number(fields[2]) + Number(fields[10]), 0)
}
const before = packets()
const cameThrough = await attackNetwork(sandbox, { addresses: ADDRESSES, port: PORT, abstract: 'canary' })
const seen = packets() - before

// The counters and the canaries count: the same attack, from beside the sandbox.
const own = await fetch(`http://192.0.2.1:${PORT}`).catch(() => undefined)
const counted = packets() - before - seen
await sandbox.destroy()
await sandboxes.close()
console.log(JSON.stringify({ cameThrough, seen, arrivals, counted: counted > 0, own: own?.status ?? 'closed' }))
process.exit(0)
