/** Turns bubblewrap's error message into the cause and its remedy. */
import { readFileSync } from 'node:fs'

const CHOICES =
  'Grant the right, or run Errand where namespaces can be made (as root on the machine itself, or in a container started with --privileged).'

export function explainRefusal(stderr: string): string {
  const setting = (path: string) => {
    try {
      return readFileSync(path, 'utf8').trim()
    } catch {
      return undefined
    }
  }
  const namespaceTrouble =
    /namespace|uid map|gid map|Operation not permitted|Permission denied|No space left|pivot_root|clone/i
  if (namespaceTrouble.test(stderr)) {
    if (setting('/proc/sys/kernel/unprivileged_userns_clone') === '0') {
      return `This kernel forbids user namespaces to ordinary users: sysctl -w kernel.unprivileged_userns_clone=1 (${firstLine(stderr)})`
    }
    if (setting('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1') {
      return `AppArmor forbids user namespaces here: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or install the bwrap profile of apparmor-profiles (${firstLine(stderr)})`
    }
    if (setting('/proc/sys/user/max_user_namespaces') === '0') {
      return `User namespaces are switched off: sysctl -w user.max_user_namespaces=15000 (${firstLine(stderr)})`
    }
    if (/bwrap:/.test(stderr)) return `The sandbox cannot make its namespaces: ${firstLine(stderr)}. ${CHOICES}`
  }
  if (/seccomp/i.test(stderr)) {
    return `This kernel does not take seccomp filters (CONFIG_SECCOMP_FILTER), which the sandbox needs: ${firstLine(stderr)}`
  }
  return stderr
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
