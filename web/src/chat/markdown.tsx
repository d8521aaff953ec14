import { type ComponentType, type JSX, lazy, memo, Suspense, useMemo } from "react";
import Render, { type Components, defaultUrlTransform, type ExtraProps, type Options } from "react-markdown";
import gfm from "remark-gfm";
import { picture } from "../ui/address";
import { CopyButton } from "../ui/controls";
import { Out } from "../ui/out";
import { blocks } from "./blocks";
import { Diagram } from "./diagram/diagram";
import { mathMarks, mayHaveMath } from "./math/marks";
import { type Math, useMath } from "./math/use-math";

const plugins: NonNullable<Options["remarkPlugins"]> = [gfm];
const Code = lazy(() => import("./code").catch(() => ({ default: ({ text }: { text: string; language: string }) => <code>{text}</code> })));

const components: Components = {
  a: ({ href, children }) => <Out href={href}>{children}</Out>,
  // The page loads nothing from elsewhere: a picture in an answer is a link until the user opens it.
  img: ({ src, alt }) =>
    typeof src === "string" && src.startsWith("data:") && picture(src) ? (
      <img src={src} alt={alt ?? ""} className="max-h-80 max-w-full rounded-xl border border-line object-contain" />
    ) : (
      <Out href={src}>{alt || String(src || "")}</Out>
    ),
  pre: ({ children, node }) => {
    const code = node?.children[0];
    const text = code && "children" in code ? code.children.map((child) => ("value" in child ? String(child.value) : "")).join("") : "";
    const names = code && "properties" in code ? code.properties.className : undefined;
    const language = Array.isArray(names) ? String(names[0] ?? "").replace("language-", "") : "";
    const body = (
      <pre className="overflow-x-auto px-3 py-2.5 leading-[1.55]" tabIndex={0}>
        {language ? (
          <Suspense fallback={children}>
            <Code text={text} language={language} />
          </Suspense>
        ) : (
          children
        )}
      </pre>
    );
    return (
      <div className="overflow-hidden rounded-xl border border-line bg-code">
        <div className="flex h-8 items-center justify-between border-b border-line pl-3 pr-0.5 text-[11.5px] text-faint">
          <span>{language || "text"}</span>
          <CopyButton text={text.replace(/\n$/, "")} />
        </div>
        {language === "mermaid" ? <Diagram text={text}>{body}</Diagram> : body}
      </div>
    );
  },
};

// A picture that is in its own address is drawn; nothing else gets past the renderer's own list of schemes.
const address = (url: string, key: string): string => (key === "src" && url.startsWith("data:") && picture(url) ? url : defaultUrlTransform(url));

const classOf = (node: { properties?: Record<string, unknown> } | undefined): string => String(node?.properties?.className ?? "");

/** withMath draws formulas, which the parser hands on as code of their own classes. */
function withMath({ default: Formula, plugin }: Math): { plugins: typeof plugins; components: Components } {
  const Pre = components.pre as ComponentType<JSX.IntrinsicElements["pre"] & ExtraProps>;
  return {
    plugins: [...plugins, [plugin, { singleDollarTextMath: false }]],
    components: {
      ...components,
      code: ({ node, children, className }) =>
        classOf(node).includes("math-inline") ? <Formula tex={String(children)} display={false} /> : <code className={className}>{children}</code>,
      pre: (props) => {
        const code = props.node?.children[0];
        if (!code || !("properties" in code) || !classOf(code).includes("math-display")) return <Pre {...props} />;
        return <Formula tex={code.children.map((child) => ("value" in child ? String(child.value) : "")).join("")} display />;
      },
    },
  };
}

const Block = memo(function Block({ text }: { text: string }) {
  const marked = mayHaveMath(text) ? mathMarks(text) : text;
  const math = useMath(/(?<!\\)\$\$/.test(marked));
  const way = useMemo(() => (math ? withMath(math) : { plugins, components }), [math]);
  return (
    <Render remarkPlugins={way.plugins} components={way.components} urlTransform={address}>
      {math ? marked : text}
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
