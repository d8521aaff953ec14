import { Component, type ErrorInfo, type ReactNode } from "react";
import { t } from "../i18n";
import { Button, CopyButton, Notice } from "./controls";

interface Props {
  /** part: one piece of a page, around which everything stays. */
  of: "app" | "page" | "part";
  /** Another value is another try: what failed may have changed. */
  about?: unknown;
  children: ReactNode;
}

interface State {
  error?: Error;
  about?: unknown;
  where?: string;
}

/** Boundary keeps a fault of the page where it happened, says so, and gives what a report of it needs. */
export class Boundary extends Component<Props, State> {
  override state: State = { about: this.props.about };

  static getDerivedStateFromError = (error: unknown): Partial<State> => ({ error: error instanceof Error ? error : new Error(String(error)) });

  static getDerivedStateFromProps = (props: Props, state: State): Partial<State> | null =>
    Object.is(props.about, state.about) ? null : { about: props.about, error: undefined, where: undefined };

  override componentDidCatch(_: unknown, info: ErrorInfo): void {
    this.setState({ where: info.componentStack ?? undefined });
  }

  override render(): ReactNode {
    const { error, where } = this.state;
    if (!error) return this.props.children;
    const details = [error.stack || `${error.name}: ${error.message}`, where?.trim(), location.pathname, navigator.userAgent].filter(Boolean).join("\n\n");
    const again = this.props.of === "part" ? () => this.setState({ error: undefined }) : () => location.reload();
    const said = (
      <Notice
        tone="bad"
        title={t(`broken.${this.props.of}`)}
        action={
          <span className="flex items-center gap-1">
            <CopyButton text={details} label={t("broken.copy")} />
            <Button onClick={again}>{t(this.props.of === "part" ? "app.again" : "app.reload")}</Button>
          </span>
        }
      >
        <p className="line-clamp-3 font-mono text-[11.5px] wrap-anywhere">{error.message}</p>
      </Notice>
    );
    return this.props.of === "part" ? said : <div className="flex h-full flex-1 items-center justify-center p-4">{said}</div>;
  }
}
