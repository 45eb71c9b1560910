/** The skills of the project and of the server: upload, view, delete. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { deleteSkill } from '../../api/sdk.gen.js'
import type { Skill } from '../../api/types.gen.js'
import { headers } from '../../server/client.ts'
import { Problem } from '../../server/problem.ts'
import { skillFileQuery, skillQuery, skillsQuery } from '../../server/queries.ts'
import { useMayChange } from '../../session/session.ts'
import { Page } from '../../shell/page.tsx'
import { languageOf } from '../../trace/tool-label.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Select } from '../../ui/field.tsx'
import { ago, bytes } from '../../ui/format.ts'
import { Icon } from '../../ui/icon.tsx'
import { Modal } from '../../ui/overlay.tsx'
import { Empty, Failure, Loading, Notice, Skeleton } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'

export default function Skills() {
  const skills = useQuery(skillsQuery)
  const [shown, setShown] = useState<string>()
  const upload = useUpload()
  const chooser = useRef<HTMLInputElement>(null)
  const mayChange = useMayChange()
  const button = mayChange && (
    <Button look="primary" icon="plus" busy={upload.isPending} onClick={() => chooser.current?.click()}>
      Upload skill
    </Button>
  )
  return (
    <Page
      narrow
      title="Skills"
      about="Instructions, scripts and references for runs. Upload a zip file with a SKILL.md."
      actions={button}
    >
      <input
        ref={chooser}
        type="file"
        accept=".zip,application/zip"
        hidden
        aria-label="Skill"
        onChange={(event) => {
          const file = event.target.files?.[0]
          if (file) upload.mutate(file)
          event.target.value = ''
        }}
      />
      {upload.error && (
        <div className="mb-4">
          <Notice tone="red" title="The skill was not uploaded">
            {Problem.from(upload.error).message}
          </Notice>
        </div>
      )}
      <div className="overflow-hidden rounded-xl border bg-card">
        {skills.error ? (
          <Failure error={skills.error} retry={() => skills.refetch()} />
        ) : !skills.data ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : skills.data.skills.length === 0 ? (
          <Empty icon="book" title="No skills yet" action={button}>
            Skills that follow the agentskills.io convention work without changes.
          </Empty>
        ) : (
          <ul aria-label="Skills">
            {skills.data.skills.map(({ name, version, description, source, updateTime }) => (
              <li key={name} className="border-t first:border-t-0">
                <button
                  type="button"
                  onClick={() => setShown(name)}
                  className="flex w-full items-center gap-4 px-4 py-3 text-left hover:bg-hover focus-visible:-outline-offset-2"
                >
                  <span className="min-w-0 flex-1">
                    <span className="flex items-center gap-2 font-medium">
                      {name}{' '}
                      <Badge tone={source === 'server' ? 'plain' : 'accent'}>
                        {source === 'server' ? 'server' : 'project'}
                      </Badge>
                    </span>
                    <span className="mt-0.5 line-clamp-2 text-soft">{description}</span>
                  </span>
                  <span className="shrink-0 text-soft tabular-nums">v{version}</span>
                  <span className="hidden w-24 shrink-0 text-right text-small text-faint sm:block">
                    {ago(updateTime)}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
      {shown && <SkillDialog name={shown} onClose={() => setShown(undefined)} />}
    </Page>
  )
}

/** Uploads the zip as the request body. The generated client would send a form. */
function useUpload() {
  const cache = useQueryClient()
  return useMutation({
    mutationFn: async (file: File) => {
      const response = await fetch('/v1beta/skills', {
        method: 'POST',
        headers: { ...headers(), 'Content-Type': 'application/zip' },
        body: file,
      })
      const answer = await response.json().catch(() => undefined)
      if (!response.ok) throw Problem.of(answer, response.status)
      return answer as Skill
    },
    onSuccess: ({ name, version }) => {
      cache.invalidateQueries({ queryKey: ['skills'] })
      toast(`Uploaded ${name} version ${version}`)
    },
  })
}

function SkillDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const cache = useQueryClient()
  const [version, setVersion] = useState<number>()
  const skill = useQuery(skillQuery(version === undefined ? name : `${name}@${version}`))
  const newest = useQuery(skillQuery(name))
  const remove = useMutation({
    mutationFn: () => deleteSkill({ path: { name } }),
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: ['skills'] })
      toast('Skill deleted')
      onClose()
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  const { data } = skill
  const mayChange = useMayChange()
  const [path, setPath] = useState('SKILL.md')
  return (
    <Modal
      open
      wide
      onClose={onClose}
      title={name}
      about={data?.description ?? '…'}
      actions={
        mayChange &&
        data?.source === 'project' && (
          <Button
            look="danger"
            icon="trash"
            busy={remove.isPending}
            onClick={() => confirm(`Delete the skill ${name} and all its versions?`) && remove.mutate()}
          >
            Delete
          </Button>
        )
      }
    >
      {skill.error ? (
        <Failure error={skill.error} />
      ) : !data ? (
        <Loading />
      ) : (
        <div className="grid gap-4">
          <div className="flex flex-wrap items-center gap-3">
            <Select
              aria-label="Version"
              className="w-40"
              value={String(data.version)}
              onChange={(event) => setVersion(Number(event.target.value))}
            >
              {(newest.data?.versions ?? [data.version]).map((number) => (
                <option key={number} value={number}>
                  Version {number}
                </option>
              ))}
            </Select>
            <span className="text-soft">
              {data.fileCount} files, {bytes(data.size)}
            </span>
            {data.license && <span className="text-soft">{data.license}</span>}
          </div>
          {data.allowedTools.length > 0 && <p className="text-soft">Allowed tools: {data.allowedTools.join(', ')}</p>}
          <div className="overflow-hidden rounded-lg border">
            <ul aria-label="Files" className="max-h-48 overflow-y-auto">
              {data.files?.map((file) => (
                <li key={file.path} className="border-t first:border-t-0">
                  <button
                    type="button"
                    aria-pressed={file.path === path}
                    onClick={() => setPath(file.path)}
                    className="flex w-full items-center gap-2.5 px-3 py-1.5 text-left hover:bg-hover focus-visible:-outline-offset-2 aria-pressed:bg-hover"
                  >
                    <Icon name={file.executable ? 'terminal' : 'file'} className="text-faint" />
                    <code className="min-w-0 flex-1 truncate text-small">{file.path}</code>
                    <span className="text-small text-faint tabular-nums">{bytes(file.size)}</span>
                  </button>
                </li>
              ))}
            </ul>
            <SkillFileView skill={`${data.name}@${data.version}`} path={path} />
          </div>
        </div>
      )}
    </Modal>
  )
}

/** A file of the skill as text. Nothing in it is executed. */
function SkillFileView({ skill, path }: { readonly skill: string; readonly path: string }) {
  const file = useQuery(skillFileQuery(skill, path))
  if (file.error) return <p className="border-t px-3 py-4 text-soft">{Problem.from(file.error).message}</p>
  if (!file.data) return <Skeleton className="h-72 rounded-none border-t" />
  if (file.data.text === undefined) return <p className="h-72 border-t px-3 py-4 text-soft">This file is not text.</p>
  return (
    <Code
      text={file.data.text}
      // Front matter would be highlighted as a heading.
      language={path === 'SKILL.md' ? 'plain' : languageOf(path)}
      label={path}
      wraps={path.endsWith('.md')}
      className="h-72 border-t bg-code p-3"
    />
  )
}
