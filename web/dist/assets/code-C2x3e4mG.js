import{t as e}from"./jsx-runtime-DePvh3-m.js";var t=String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`,n=e=>new Set(e.trim().split(/\s+/)),r={comment:String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,string:t+"|`(?:\\\\.|[^`\\\\])*`?",words:n(`
    abstract any as async await bool boolean break byte case catch chan char class const continue crate default defer
    delete do double else enum export extends extern false final finally float fn for from func function go goto if impl
    implements import in instanceof int interface let long loop map match mod mut namespace new nil null number of
    override package private protected pub public range readonly ref return select self short static str string struct
    super switch template this throw true try type typedef typeof undefined unsafe use using var virtual void where while
    yield
  `)},i={comment:String.raw`#[^\n]*`,string:String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|`+t,words:n(`
    and as assert async await begin break case class continue def del do done elif else elsif end esac except exit export
    false fi finally for from function global if import in is lambda local module nil None nonlocal not null or pass raise
    require rescue return self set then True False true try unless until while with yield
  `)},a={comment:String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,string:t,words:n(`
    add all alter and as asc begin between by case check column commit create cross default delete desc distinct drop else
    end exists from full group having if in index inner insert into is join key left like limit local not null offset on
    or order outer primary references return right rollback select set table then union unique update values view when
    where with
  `)},o={comment:String.raw`<!--[\s\S]*?(?:-->|$)`,string:t,words:new Set},s=new Map([[r,`c c++ cpp cs csharp css dart go golang java javascript js json jsonc jsx kotlin php proto rs rust scala scss swift ts tsx typescript`],[i,`bash dockerfile ini makefile perl py python r rb ruby sh shell toml yaml yml zsh`],[a,`haskell lua mysql postgres sql sqlite`],[o,`html svg vue xml`]].flatMap(([e,t])=>t.split(` `).map(t=>[t,e]))),c=5e4;function l(e,t){let n=t.toLowerCase();if(n===`diff`||n===`patch`)return e.split(/(?<=\n)/).map(u);let r=s.get(n);if(!r||e.length>c)return[{text:e}];let i=[],o=0;for(let t of e.matchAll(RegExp(`(${r.comment})|(${r.string})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`,`g`))){let n=t[0],s=r.words.has(r===a?n.toLowerCase():n),c=t[1]?`comment`:t[2]?`string`:t[3]?`number`:s?`keyword`:void 0;c&&(t.index>o&&i.push({text:e.slice(o,t.index)}),i.push({text:n,kind:c}),o=t.index+n.length)}return o<e.length&&i.push({text:e.slice(o)}),i}function u(e){return/^(\+\+\+|---|@@)/.test(e)?{text:e,kind:`comment`}:{text:e,kind:e.startsWith(`+`)?`added`:e.startsWith(`-`)?`removed`:void 0}}var d=e();function f({text:e,language:t}){return(0,d.jsx)(`code`,{children:l(e,t).map((e,t)=>e.kind?(0,d.jsx)(`span`,{className:`code-${e.kind}`,children:e.text},t):e.text)})}export{f as default};