import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Boundary } from "./boundary";

afterEach(cleanup);

function Picky({ value }: { value: string }) {
  if (value === "bad") throw new Error("cannot draw bad");
  return <p>drew {value}</p>;
}

test("a part that cannot be drawn leaves the others, gives its details, and is tried again with another value", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { userAgent: "test", clipboard: { writeText } });
  const draw = (value: string) => (
    <>
      <p>next to it</p>
      <Boundary of="part" about={value}>
        <Picky value={value} />
      </Boundary>
    </>
  );
  const page = render(draw("bad"));
  expect(screen.getByText("next to it")).toBeTruthy();
  expect(screen.getByText("cannot draw bad")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Copy the details" }));
  expect(writeText).toHaveBeenCalledWith(expect.stringMatching(/cannot draw bad[\s\S]*Picky/));
  page.rerender(draw("good"));
  expect(screen.getByText("drew good")).toBeTruthy();
  vi.unstubAllGlobals();
});
