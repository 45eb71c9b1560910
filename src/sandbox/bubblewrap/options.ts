/** Settings of the bubblewrap driver. */
export interface BubblewrapOptions {
  /** A directory tree to be the sandbox's root, or the name of a Docker image; undefined: the host's /usr, read-only. */
  readonly rootfs: string | undefined
  /** Whether sandboxes are forked from a template. `auto`: if the self-test passes; `on`: or the driver does not open. */
  readonly forkServer: 'auto' | 'on' | 'off'
  /** The Docker that `rootfs` is exported from if it names an image. */
  readonly dockerHost: string
}
