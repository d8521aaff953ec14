import { lazy, memo, Suspense } from "react";
import Render, { type Components } from "react-markdown";
import gfm from "remark-gfm";
import { CopyButton } from "../ui/controls";
import { blocks } from "./blocks";

const plugins = [gfm];
const Code = lazy(() => import("./code").catch(() => ({ default: ({ text }: { text: string; language: string }) => <code>{text}</code> })));

const components: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  // The page loads nothing from elsewhere: a picture in an answer is a link until the user opens it.
  img: ({ src, alt }) =>
    typeof src === "string" && src.startsWith("data:image/") ? (
      <img src={src} alt={alt ?? ""} />
    ) : (
      <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noreferrer noopener">
        {alt || String(src)}
      </a>
    ),
  pre: ({ children, node }) => {
    const code = node?.children[0];
    const text = code && "children" in code ? code.children.map((child) => ("value" in child ? String(child.value) : "")).join("") : "";
    const names = code && "properties" in code ? code.properties.className : undefined;
    const language = Array.isArray(names) ? String(names[0] ?? "").replace("language-", "") : "";
    return (
      <div className="overflow-hidden rounded-xl border border-line bg-code">
        <div className="flex h-8 items-center justify-between border-b border-line pl-3 pr-0.5 text-[11.5px] text-faint">
          <span>{language || "text"}</span>
          <CopyButton text={text.replace(/\n$/, "")} />
        </div>
        <pre className="overflow-x-auto px-3 py-2.5 leading-[1.55]" tabIndex={0}>
          {language ? (
            <Suspense fallback={children}>
              <Code text={text} language={language} />
            </Suspense>
          ) : (
            children
          )}
        </pre>
      </div>
    );
  },
};

const Block = memo(function Block({ text }: { text: string }) {
  return (
    <Render remarkPlugins={plugins} components={components}>
      {text}
    </Render>
  );
});

export default function Markdown({ text }: { text: string }) {
  return (
    <div className="prose">
      {blocks(text).map((block, index) => (
        <Block key={index} text={block} />
      ))}
    </div>
  );
}
