/** The actions on a run: cancel, run again, share, compare, continue, delete. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { cancelInteraction, deleteInteraction } from '../api/sdk.gen.js'
import type { Interaction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { runQuery } from '../server/queries.ts'
import { linkToShare, useMayChange, useSession } from '../session/session.ts'
import { Button, ButtonLink, IconButton } from '../ui/button.tsx'
import { copyText } from '../ui/copy.tsx'
import { Menu, MenuItem, MenuRule } from '../ui/overlay.tsx'
import { toast } from '../ui/toast.tsx'

export function InteractionActions({
  interaction,
  status,
}: {
  readonly interaction: Interaction
  readonly status: string
}) {
  const navigate = useNavigate()
  const cache = useQueryClient()
  const cancel = useMutation({
    mutationFn: () => cancelInteraction({ path: { id: interaction.id } }),
    onSettled: () => cache.invalidateQueries({ queryKey: ['interactions'] }),
    onError: (error) => toast(Problem.from(error).message, true),
  })
  const remove = useMutation({
    mutationFn: () => deleteInteraction({ path: { id: interaction.id } }),
    onSuccess: async () => {
      await navigate({ to: '/interactions' })
      cache.removeQueries({ queryKey: runQuery(interaction.id).queryKey })
      cache.invalidateQueries({ queryKey: ['interactions', 'list'] })
      toast('Deleted')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  const session = useSession()
  const mayChange = useMayChange()
  const share = () =>
    copyText(linkToShare(session?.project?.id ?? '')).then(
      () => toast('Link copied. Members of this account can open it.'),
      () => toast('The browser did not allow copying', true),
    )
  return (
    <>
      {!mayChange ? null : status === 'running' ? (
        <Button icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel
        </Button>
      ) : (
        <ButtonLink to="/playground" search={{ again: interaction.id }} icon="retry">
          Run again
        </ButtonLink>
      )}
      <Button icon="link" onClick={share}>
        Share
      </Button>
      <Menu trigger={<IconButton icon="more" label="More actions" />}>
        <MenuItem icon="columns" onSelect={() => navigate({ to: '/compare', search: { a: interaction.id } })}>
          Compare with another run
        </MenuItem>
        <MenuItem
          icon="right"
          disabled={status === 'running' || !mayChange}
          onSelect={() => navigate({ to: '/playground', search: { run: interaction.id } })}
        >
          Continue in playground
        </MenuItem>
        <MenuRule />
        <MenuItem
          icon="trash"
          danger
          disabled={status === 'running' || !mayChange}
          onSelect={() => confirm('Delete this run with its events and files?') && remove.mutate()}
        >
          Delete
        </MenuItem>
      </Menu>
    </>
  )
}
