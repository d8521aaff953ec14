import { tokens } from "./highlight";

/** Code is a block of code with its pieces coloured. */
export default function Code({ text, language }: { text: string; language: string }) {
  return (
    <code>
      {tokens(text, language).map((it, index) =>
        it.kind ? (
          <span key={index} className={`code-${it.kind}`}>
            {it.text}
          </span>
        ) : (
          it.text
        ),
      )}
    </code>
  );
}
