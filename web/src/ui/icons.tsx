import type { ReactNode } from "react";

// One stroke, one grid. Icons never carry meaning alone: the control around them has a label.
const icon = (paths: ReactNode) =>
  function Icon({ className = "size-4" }: { className?: string }) {
    return (
      <svg
        viewBox="0 0 20 20"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.6"
        strokeLinecap="round"
        strokeLinejoin="round"
        className={`shrink-0 ${className}`}
        aria-hidden="true"
      >
        {paths}
      </svg>
    );
  };

export const MenuIcon = icon(<path d="M3 5.5h14M3 10h14M3 14.5h14" />);
export const PlusIcon = icon(<path d="M10 4v12M4 10h12" />);
export const SearchIcon = icon(
  <>
    <circle cx="9" cy="9" r="5" />
    <path d="m13 13 3.5 3.5" />
  </>,
);
export const SendIcon = icon(<path d="M10 16V4.5M5 9l5-5 5 5" />);
export const StopIcon = icon(<rect x="5.5" y="5.5" width="9" height="9" rx="1.5" fill="currentColor" />);
export const MoreIcon = icon(
  <>
    <circle cx="4.5" cy="10" r=".9" fill="currentColor" />
    <circle cx="10" cy="10" r=".9" fill="currentColor" />
    <circle cx="15.5" cy="10" r=".9" fill="currentColor" />
  </>,
);
export const CloseIcon = icon(<path d="m5 5 10 10M15 5 5 15" />);
export const CheckIcon = icon(<path d="m4.5 10.5 3.5 3.5 7.5-8" />);
export const ChevronIcon = icon(<path d="m7.5 5 5 5-5 5" />);
export const DownIcon = icon(<path d="M10 4v12M5 11l5 5 5-5" />);
export const UpIcon = icon(<path d="M10 16V4M5 9l5-5 5 5" />);
export const PanelIcon = icon(
  <>
    <rect x="3" y="4" width="14" height="12" rx="2" />
    <path d="M12.5 4v12" />
  </>,
);
export const GearIcon = icon(
  <>
    <circle cx="10" cy="10" r="2.4" />
    <path d="M10 2.8v2M10 15.2v2M2.8 10h2M15.2 10h2M4.9 4.9l1.4 1.4M13.7 13.7l1.4 1.4M4.9 15.1l1.4-1.4M13.7 6.3l1.4-1.4" />
  </>,
);
export const CopyIcon = icon(
  <>
    <rect x="7" y="7" width="9" height="9" rx="1.8" />
    <path d="M13 7V5.5A1.5 1.5 0 0 0 11.5 4h-6A1.5 1.5 0 0 0 4 5.5v6A1.5 1.5 0 0 0 5.5 13H7" />
  </>,
);
export const TerminalIcon = icon(
  <>
    <rect x="2.5" y="4" width="15" height="12" rx="2" />
    <path d="m6 8 2.5 2L6 12M10.5 12.5H14" />
  </>,
);
export const FileIcon = icon(<path d="M11.5 3H6a1.5 1.5 0 0 0-1.5 1.5v11A1.5 1.5 0 0 0 6 17h8a1.5 1.5 0 0 0 1.5-1.5V7zM11.5 3v4h4" />);
export const FolderIcon = icon(
  <path d="M2.8 6A1.5 1.5 0 0 1 4.3 4.5h3.4l1.8 2h6.2A1.5 1.5 0 0 1 17.2 8v6.5a1.5 1.5 0 0 1-1.5 1.5H4.3a1.5 1.5 0 0 1-1.5-1.5z" />,
);
export const ToolIcon = icon(<path d="M12.8 3.6a4 4 0 0 0-4.9 5.2l-4.6 4.6a1.8 1.8 0 0 0 2.6 2.6l4.6-4.6a4 4 0 0 0 5.2-4.9l-2.4 2.4-2.3-.6-.6-2.3z" />);
export const ThinkIcon = icon(<path d="M7.5 14.5h5M8.5 17h3M10 3a5 5 0 0 0-3 9c.4.4.5.8.5 1.2v1.3h5v-1.3c0-.4.1-.8.5-1.2a5 5 0 0 0-3-9z" />);
export const AskIcon = icon(
  <>
    <circle cx="10" cy="10" r="7" />
    <path d="M8 8a2 2 0 1 1 2.7 1.9c-.5.2-.7.5-.7 1.1M10 13.6v.1" />
  </>,
);
export const ListIcon = icon(<path d="m3.5 5.5 1 1 2-2M3.5 13.5l1 1 2-2M9.5 6H17M9.5 14H17" />);
export const ClipIcon = icon(<path d="m15.5 9.5-5.8 5.8a3.4 3.4 0 0 1-4.8-4.8l6-6a2.3 2.3 0 0 1 3.2 3.2l-5.8 5.9a1.1 1.1 0 0 1-1.6-1.6l5.3-5.3" />);
export const RetryIcon = icon(<path d="M15.5 8A6 6 0 1 0 16 11M16 4v4h-4" />);
export const WarnIcon = icon(
  <path d="M10 7.5v3.5M10 13.8v.1M8.7 3.8 2.6 14.5A1.5 1.5 0 0 0 3.9 16.7h12.2a1.5 1.5 0 0 0 1.3-2.2L11.3 3.8a1.5 1.5 0 0 0-2.6 0z" />,
);
export const PencilIcon = icon(<path d="m12.5 4.5 3 3L7 16H4v-3z" />);
export const SteerIcon = icon(<path d="M4 16c0-5 3-7 8-7h4M12.5 5.5 16 9l-3.5 3.5" />);
export const JobIcon = icon(
  <>
    <circle cx="10" cy="10" r="7" />
    <path d="M10 6v4l2.5 2" />
  </>,
);
export const ArchiveIcon = icon(<path d="M3 4h14v3.5H3zM4.5 7.5V15A1.5 1.5 0 0 0 6 16.5h8a1.5 1.5 0 0 0 1.5-1.5V7.5M8 10.5h4" />);
export const InboxIcon = icon(
  <path d="M3 11.5 5.2 4.8A1.2 1.2 0 0 1 6.3 4h7.4a1.2 1.2 0 0 1 1.1.8L17 11.5V15a1.2 1.2 0 0 1-1.2 1.2H4.2A1.2 1.2 0 0 1 3 15zM3 11.5h4l1 2h4l1-2h4" />,
);
export const PinIcon = icon(<path d="M7 3.5h6M8 3.5v5L5.5 11.5h9L12 8.5v-5M10 11.5V17" />);
export const BranchIcon = icon(<path d="M6 4v12M6 13c0-4 8-2 8-7M14 6a1.6 1.6 0 1 0 0-.01M6 4a1.6 1.6 0 1 0 0-.01" />);
export const TrashIcon = icon(<path d="M4 6h12M8 6V4h4v2M6 6l.7 9.5A1.5 1.5 0 0 0 8.2 17h3.6a1.5 1.5 0 0 0 1.5-1.5L14 6" />);

export function Spinner({ className = "size-4" }: { className?: string }) {
  return (
    <svg
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      className={`spin shrink-0 ${className}`}
      aria-hidden="true"
    >
      <path d="M10 3a7 7 0 1 1-7 7" />
    </svg>
  );
}

export function Mark({ className = "size-5" }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={`shrink-0 ${className}`} aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0f5f63" />
      <path
        d="M9 22h14M13 22V9.5a2 2 0 0 1 4 0V22M19 22v-8.5a2 2 0 0 1 4 0V22"
        fill="none"
        stroke="#fff"
        strokeWidth="2.2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
export const ShareIcon = icon(<path d="M10 12V3.5M6.5 7 10 3.5 13.5 7M6.5 9.5H5v7h10v-7h-1.5" />);
export const LinkIcon = icon(
  <>
    <path d="M8.5 11.5a3 3 0 0 0 4.3.3l2.4-2.4a3 3 0 0 0-4.3-4.3l-1.2 1.2" />
    <path d="M11.5 8.5a3 3 0 0 0-4.3-.3L4.8 10.6a3 3 0 0 0 4.3 4.3l1.2-1.2" />
  </>,
);
