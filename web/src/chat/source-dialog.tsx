import { type DragEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { get, Problem, query } from "../api/http";
import type { Folders, Repository } from "../api/types";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { type Chosen, dropped, type Found, offers, sendUpload } from "../state/source";
import { useStore } from "../state/store";
import { Badge, Button, Notice } from "../ui/controls";
import { ChevronIcon, FolderIcon, Spinner, UpIcon } from "../ui/icons";
import { useLocal } from "./source-picker";

type Way = "empty" | "folder" | "url" | "upload";

const field = "mt-1 block w-full min-w-0 rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] text-ink hover:border-line-strong";
const isURL = (text: string): boolean => /^[a-z+]+:\/\//i.test(text) || /^[^/\s]+:/.test(text);

function wayOf(source: Chosen | undefined, local: boolean): Way {
  if (source?.kind === "branch") return source.repo?.startsWith("/") && local ? "folder" : "url";
  if (source?.kind === "here") return "folder";
  return source?.kind === "upload" ? "upload" : "empty";
}

/** SourceDialog chooses what a new chat works on. Nothing is made before the first message is sent. */
export default function SourceDialog({ now, onChoose, onClose }: { now?: Chosen; onChoose: (next: Chosen) => void; onClose: () => void }) {
  const local = useLocal();
  const [way, setWay] = useState<Way>(() => wayOf(now, local));
  const [next, setNext] = useState<Chosen | undefined>(now);
  const ways: Way[] = ["empty", ...(local ? (["folder"] as const) : []), "url", "upload"];
  const pick = (to: Way) => {
    setWay(to);
    setNext(to === "empty" ? { kind: "empty" } : wayOf(now, local) === to ? now : undefined);
  };
  return (
    <form
      className="space-y-3 text-[13px]"
      onSubmit={(event) => {
        event.preventDefault();
        if (next) onChoose(next);
      }}
    >
      <h2 className="text-[15px] font-semibold">{t("source.title")}</h2>
      <div role="radiogroup" aria-label={t("source.kind")} className="flex flex-wrap gap-1">
        {ways.map((it) => (
          <label
            key={it}
            className={`cursor-pointer rounded-lg border px-2.5 py-1 font-medium has-focus-visible:outline-2 has-focus-visible:outline-accent ${
              it === way ? "border-accent bg-accent-soft text-accent" : "border-line text-muted hover:text-ink"
            }`}
          >
            <input type="radio" name="way" className="sr-only" checked={it === way} onChange={() => pick(it)} />
            {t(`source.${it}` as Key)}
          </label>
        ))}
      </div>
      {way === "empty" && <p className="text-muted">{t("source.emptyText")}</p>}
      {way === "folder" && <Folder now={next} onPick={setNext} />}
      {way === "url" && <Address now={next} onPick={setNext} />}
      {way === "upload" && <Sent now={next} onPick={setNext} />}
      <div className="flex justify-end gap-2 border-t border-line pt-3">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" look="primary" disabled={!next}>
          {t("source.use")}
        </Button>
      </div>
    </form>
  );
}

function Wrong({ problem }: { problem?: Problem }) {
  if (!problem) return null;
  return (
    <Notice tone="bad">
      <p>{problem.message}</p>
      {problem.hint && <p>{problem.hint}</p>}
    </Notice>
  );
}

/** Recent are repositories and directories of earlier chats. */
function Recent({ fits, onPick }: { fits: (at: string) => boolean; onPick: (at: string) => void }) {
  const items = useStore(offers, (it) => it?.items);
  const all = [...new Set((items ?? []).map((it) => it.at).filter(fits))].slice(0, 5);
  if (all.length === 0) return null;
  return (
    <section>
      <h3 className="mb-1 text-[11.5px] font-medium text-faint">{t("source.recent")}</h3>
      <ul className="flex flex-wrap gap-1">
        {all.map((at) => (
          <li key={at} className="min-w-0">
            <button
              type="button"
              title={at}
              onClick={() => onPick(at)}
              className="block max-w-full truncate rounded-lg border border-line px-2 py-0.5 font-mono text-[12px] hover:bg-hover"
            >
              {at}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Folder({ now, onPick }: { now?: Chosen; onPick: (next: Chosen | undefined) => void }) {
  const [path, setPath] = useState(now?.dir?.startsWith("/") ? now.dir : (now?.repo ?? ""));
  const [folders, setFolders] = useState<Folders>();
  const [problem, setProblem] = useState<Problem>();
  const [at, setAt] = useState(path);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const stop = new AbortController();
    setProblem(undefined);
    get<Folders>(`/sources/folders${query({ path: at })}`, stop.signal).then(
      (it) => {
        setFolders(it);
        // What was typed meanwhile stays, and an empty field that has the focus stays empty.
        setPath((now) => (now === at && (at !== "" || document.activeElement !== input.current) ? it.path : now));
      },
      (error: unknown) => !stop.signal.aborted && setProblem(error as Problem),
    );
    return () => stop.abort();
  }, [at]);
  const go = (to: string) => {
    onPick(undefined);
    setPath(to);
    setAt(to);
  };
  return (
    <div className="space-y-3">
      <Recent fits={(it) => it.startsWith("/")} onPick={go} />
      <div>
        <label htmlFor={id} className="text-muted">
          {t("source.path")}
        </label>
        <div className="flex gap-2">
          <input
            ref={input}
            id={id}
            value={path}
            spellCheck={false}
            className={`${field} font-mono`}
            onChange={(event) => setPath(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || path === folders?.path) return;
              event.preventDefault();
              go(path.trim());
            }}
          />
          <Button className="mt-1 shrink-0" onClick={() => go(path.trim())}>
            {t("source.open")}
          </Button>
        </div>
      </div>
      <Wrong problem={problem} />
      {folders && (
        <>
          <ul aria-label={t("source.folders")} className="max-h-44 overflow-y-auto rounded-lg border border-line">
            {folders.parent && (
              <li>
                <button type="button" className={entry} onClick={() => go(folders.parent!)}>
                  <UpIcon className="size-3.5 text-faint" /> {t("source.up")}
                </button>
              </li>
            )}
            {folders.items
              .filter((it) => it.name !== ".git")
              .map((it) => (
                <li key={it.path}>
                  <button type="button" className={entry} onClick={() => go(it.path)}>
                    <FolderIcon className="size-3.5 text-faint" />
                    <span className="min-w-0 flex-1 truncate">{it.name}</span>
                    {it.repository && <Badge tone="accent">git</Badge>}
                    <ChevronIcon className="size-3 text-faint" />
                  </button>
                </li>
              ))}
            {folders.truncated && <li className="px-2.5 py-1 text-faint">{t("source.more")}</li>}
          </ul>
          <Here key={folders.path} path={folders.path} now={now} onPick={onPick} />
        </>
      )}
    </div>
  );
}

const entry = "flex min-h-8 w-full items-center gap-2 px-2.5 text-left hover:bg-hover";

/** Here says how a folder is used: as a branch of its repository, or itself. */
function Here({ path, now, onPick }: { path: string; now?: Chosen; onPick: (next: Chosen | undefined) => void }) {
  const [repository, setRepository] = useState<Repository | null>();
  const [why, setWhy] = useState<Problem>();
  const [how, setHow] = useState<"branch" | "here" | undefined>(now?.kind === "here" ? "here" : undefined);
  const [ref, setRef] = useState(now?.ref ?? "");
  const [dirty, setDirty] = useState(now?.dirty ?? false);
  const names = useId();
  useEffect(() => {
    const stop = new AbortController();
    get<Repository>(`/sources/inspect${query({ repo: path })}`, stop.signal).then(
      (it) => {
        setRepository(it);
        setHow((old) => old ?? (it.commit ? "branch" : undefined));
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setRepository(null);
        setWhy(error as Problem);
      },
    );
    return () => stop.abort();
  }, [path]);
  const uncommitted = (repository?.changed ?? 0) + (repository?.untracked ?? 0);
  useEffect(() => {
    if (how === "here") onPick({ kind: "here", dir: path });
    else if (how === "branch" && repository) {
      onPick({
        kind: "branch",
        repo: repository.repo,
        dir: repository.dir || undefined,
        ref: ref.trim() || undefined,
        dirty: (dirty && uncommitted > 0) || undefined,
      });
    }
  }, [how, repository, ref, dirty, path]);
  if (repository === undefined) return <Spinner />;
  return (
    <fieldset className="space-y-2">
      <legend className="sr-only">{t("source.how")}</legend>
      {repository?.commit && (
        <Way name="branch" on={how === "branch"} title={t("source.branch")} text={t("source.branchText")} onPick={() => setHow("branch")}>
          <div className="mt-1.5 flex flex-wrap items-center gap-x-4 gap-y-1.5">
            <label className="flex items-center gap-2 text-muted">
              {t("source.ref")}
              <input
                list={names}
                value={ref}
                spellCheck={false}
                placeholder={repository.branch || "HEAD"}
                className="h-7 w-44 rounded-lg border border-line bg-ground px-2 font-mono text-[12px] text-ink"
                onChange={(event) => setRef(event.target.value)}
              />
            </label>
            <datalist id={names}>
              {repository.branches.map((it) => (
                <option key={it.name} value={it.name} />
              ))}
            </datalist>
            {uncommitted > 0 && (
              <label className="flex items-center gap-2">
                <input type="checkbox" checked={dirty} className="accent-accent" onChange={(event) => setDirty(event.target.checked)} />
                {t("source.dirty", { changed: repository.changed, untracked: repository.untracked })}
              </label>
            )}
          </div>
        </Way>
      )}
      {!repository?.commit && (
        <p className="text-muted">{why && why.status !== 404 ? [why.message, why.hint].filter(Boolean).join(". ") : t("source.noRepository")}</p>
      )}
      <Way name="here" on={how === "here"} title={t("source.here")} text={t("source.hereText", { dir: path })} warn onPick={() => setHow("here")} />
    </fieldset>
  );
}

function Way(props: { name: string; on: boolean; title: string; text: string; warn?: boolean; onPick: () => void; children?: ReactNode }) {
  const tone = props.on ? (props.warn ? "border-warn bg-warn-soft" : "border-accent") : "border-line";
  return (
    <div className={`rounded-lg border px-3 py-2 ${tone}`}>
      <label className="flex cursor-pointer items-start gap-2.5">
        <input type="radio" name="how" checked={props.on} onChange={props.onPick} className="mt-1 shrink-0 accent-accent" />
        <span className="min-w-0">
          <span className="block font-medium">{props.title}</span>
          <span className={`block text-[12.5px] wrap-anywhere ${props.on && props.warn ? "text-warn" : "text-muted"}`}>{props.text}</span>
        </span>
      </label>
      {props.on && props.children && <div className="pl-6">{props.children}</div>}
    </div>
  );
}

function Address({ now, onPick }: { now?: Chosen; onPick: (next: Chosen | undefined) => void }) {
  const [repo, setRepo] = useState(now?.kind === "branch" ? (now.repo ?? "") : "");
  const [ref, setRef] = useState(now?.kind === "branch" ? (now.ref ?? "") : "");
  const say = (repo: string, ref: string) => {
    setRepo(repo);
    setRef(ref);
    onPick(repo.trim() ? { kind: "branch", repo: repo.trim(), ref: ref.trim() || undefined } : undefined);
  };
  return (
    <div className="space-y-3">
      <Recent fits={isURL} onPick={(at) => say(at, "")} />
      <label className="block text-muted">
        {t("source.address")}
        <input value={repo} spellCheck={false} placeholder="https://…" className={`${field} font-mono`} onChange={(event) => say(event.target.value, ref)} />
      </label>
      <label className="block text-muted">
        {t("source.ref")}
        <input value={ref} spellCheck={false} placeholder="HEAD" className={`${field} font-mono`} onChange={(event) => say(repo, event.target.value)} />
      </label>
      <p className="text-muted">{t("source.urlText")}</p>
    </div>
  );
}

function Sent({ now, onPick }: { now?: Chosen; onPick: (next: Chosen | undefined) => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [over, setOver] = useState(false);
  const send = async (files: Found[]) => {
    if (files.length === 0) return;
    setBusy(true);
    setProblem(undefined);
    onPick(undefined);
    try {
      const { id, files: count } = await sendUpload(files);
      const name = files.length === 1 ? files[0]!.path : t("source.files", { n: files.length });
      onPick({ kind: "upload", upload: id, title: files.length === 1 && count > 1 ? `${name} · ${t("source.files", { n: count })}` : name });
    } catch (error) {
      setProblem(error as Problem);
    } finally {
      setBusy(false);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void dropped(event.dataTransfer).then(send, () => setProblem(new Problem(t("source.unreadable"), 0, "invalid")));
  };
  const taken = (list: FileList | null) => [...(list ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return (
    <div className="space-y-3">
      <div
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
        className={`flex flex-col items-center gap-2 rounded-xl border border-dashed px-4 py-6 text-center
          ${over ? "border-accent bg-accent-soft" : "border-line-strong"}`}
      >
        {busy ? <Spinner /> : <p className="font-medium wrap-anywhere">{now?.kind === "upload" ? now.title : t("source.drop")}</p>}
        <p className="text-muted">{t("source.dropText")}</p>
        <div className="flex flex-wrap justify-center gap-2">
          <Chooser text={t("source.chooseFiles")} onPick={(list) => void send(taken(list))} />
          <Chooser text={t("source.chooseFolder")} folder onPick={(list) => void send(taken(list))} />
        </div>
      </div>
      <Wrong problem={problem} />
    </div>
  );
}

function Chooser({ text, folder = false, onPick }: { text: string; folder?: boolean; onPick: (list: FileList | null) => void }) {
  return (
    <label className="cursor-pointer rounded-lg border border-line-strong px-3 py-1 font-medium hover:bg-hover has-focus-visible:outline-2
      has-focus-visible:outline-accent">
      <input
        type="file"
        multiple
        className="sr-only"
        ref={(it) => void it?.toggleAttribute("webkitdirectory", folder)}
        onChange={(event) => {
          onPick(event.target.files);
          event.target.value = ""; // the same files may be chosen again
        }}
      />
      {text}
    </label>
  );
}
