/** Finds processes on this machine by a marker text. */
import { readdir, readFile } from 'node:fs/promises'

/** Ids of processes with this text in their command line or environment. */
export async function processesWith(text: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    for (const file of ['cmdline', 'environ']) {
      const content = await readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
      if (content.includes(text) && !found.includes(pid)) found.push(pid)
    }
  }
  return found
}

/** Python code that starts a process tree that ignores SIGTERM, one process in its own session, and never ends. */
export function stubbornTree(mark: string): string {
  return `
import os, signal, subprocess, time
stay = "trap '' TERM INT HUP; while :; do sleep 1; done"
env = dict(os.environ, MARKER='${mark}')
subprocess.Popen(['bash', '-c', stay, '${mark}'], env=env)
subprocess.Popen(['setsid', 'bash', '-c', stay + ' & ' + stay, '${mark}'], env=env, stdout=subprocess.DEVNULL)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('started', flush=True)
while True:
    time.sleep(1)`
}
