/** The docker driver's entry in the registry. It loads the driver only when it is opened. */
import type { DriverDefinition } from '../driver.ts'
import { type DockerOptions, IMAGE_NAME } from './options.ts'

export const docker: DriverDefinition<DockerOptions> = {
  summary: 'creates each sandbox as a container',
  settings: {
    image: {
      kind: 'text',
      must: 'the name of an image',
      pattern: IMAGE_NAME,
      fallback: 'errand-sandbox',
      doc: 'docker: image of the sandboxes. `script/rootfs --image errand-sandbox` builds one with the usual tools for data.',
    },
    dockerHost: {
      kind: 'text',
      must: 'the address of a unix socket like unix:///var/run/docker.sock',
      pattern: /^unix:\/\/\/\S+$/,
      fallback: 'unix:///var/run/docker.sock',
      doc: 'docker: address of the daemon.',
    },
    runtime: {
      kind: 'text',
      must: 'the name of a runtime',
      pattern: /^[\w.-]+$/,
      fallback: 'auto',
      doc: 'docker: runtime of the daemon to use. `auto` selects gVisor’s `runsc` if the daemon has it (a separate kernel for each sandbox), else the daemon’s default.',
    },
  },
  // Containers bring all that they need in their image.
  programs: [],
  conflict: ({ rootfs }) =>
    rootfs === undefined ? undefined : 'sandbox.rootfs is for bubblewrap; with docker, name an image in sandbox.image.',
  hiddenPaths: () => [],
  open: async (options) => (await import('./docker.ts')).openDocker(options),
}
